//! Large content, stored in parts.

use ikigai_store::blobs::{PART_BYTES, hash_of, parts_of, put_blob};
use ikigai_store::sqlite::InjectedFault;
use ikigai_store::{Batch, Log, ReadLog};
use ikigai_testkit::block_on;

use crate::support::{Disk, open};

fn content(bytes: usize) -> Vec<u8> {
    (0..=u8::MAX).cycle().take(bytes).collect()
}

/// Blobs of any size are read back unchanged.
#[test]
fn blobs_of_any_size_are_read_back() {
    let disk = Disk::new();
    let store = open(&disk.path, 1).unwrap();

    for bytes in [0, 1, PART_BYTES, PART_BYTES + 1, 6 * PART_BYTES - 1] {
        let content = content(bytes);
        let hash = block_on(put_blob(&store, &content)).unwrap();
        assert_eq!(hash, hash_of(&content));
        assert_eq!(block_on(store.blob(hash)).unwrap(), Some(content));
    }
}

/// A blob with a missing part reads as `None`; storing it again completes it.
#[test]
fn a_half_stored_blob_is_none_until_it_is_completed() {
    let disk = Disk::new();
    let store = open(&disk.path, 1).unwrap();
    let content = content(9 * PART_BYTES);
    let hash = hash_of(&content);

    let last = parts_of(&content).pop().into_iter().collect();
    let batch = Batch {
        with: last,
        ..Batch::default()
    };
    block_on(store.commit(batch)).unwrap();
    assert_eq!(block_on(store.blob(hash)).unwrap(), None);
    store.faults().fail_commit(InjectedFault::Lost);
    assert!(block_on(put_blob(&store, &content)).is_err());
    assert_eq!(block_on(store.blob(hash)).unwrap(), None);
    block_on(put_blob(&store, &content)).unwrap();

    assert_eq!(block_on(store.blob(hash)).unwrap(), Some(content));
}
