use super::*;

fn image(bytes: u64) -> Image {
    Image {
        hash: bytes.to_string(),
        media_type: "image/png".to_owned(),
        width: 10,
        height: 10,
        bytes,
    }
}

#[test]
fn requests_have_few_images_and_their_start_changes_seldom() {
    let mut starts = Vec::new();
    for sent in 0..200 {
        let images = vec![image(1_000); sent];
        let newest = newest_parts(&images);
        assert!(newest.len() <= 92, "{} of {sent}", newest.len());
        starts.push(sent - newest.len());
    }
    starts.dedup();
    assert_eq!(starts, [0, 46, 91, 136]);

    let large = vec![image(PART_BYTES); 5];
    assert_eq!(newest_parts(&large).len(), 2);
    assert_eq!(newest_parts(&[]), []);
}
