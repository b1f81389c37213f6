use super::{MachineParts, container_of, user_of};

const HOST: &str = "29 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
                    30 29 0:5 / /proc rw - proc proc rw\n";

const DOCKER: &str = "1 0 0:77 / / rw - overlay overlay rw\n\
    2 1 8:1 /var/lib/docker/containers/3f4a5b6c7d8e9f003f4a5b6c7d8e9f003f4a5b6c7d8e9f003f4a5b6c7d8e9f00/resolv.conf /etc/resolv.conf rw - ext4 /dev/sda1 rw\n\
    3 1 8:1 /var/lib/docker/containers/3f4a5b6c7d8e9f003f4a5b6c7d8e9f003f4a5b6c7d8e9f003f4a5b6c7d8e9f00/hostname /etc/hostname rw - ext4 /dev/sda1 rw\n";

const POD: &str = "7 1 8:1 /var/lib/kubelet/pods/0f0e0d0c-1111-2222-3333-444455556666/etc-hosts /etc/hosts rw - ext4 /dev/sda1 rw\n";

#[test]
fn a_container_is_recognised_by_the_files_mounted_into_it() {
    assert_eq!(container_of(HOST), None);
    assert_eq!(
        container_of(DOCKER),
        Some("3f4a5b6c7d8e9f003f4a5b6c7d8e9f003f4a5b6c7d8e9f003f4a5b6c7d8e9f00")
    );
    assert_eq!(
        container_of(POD),
        Some("0f0e0d0c-1111-2222-3333-444455556666")
    );
    assert_eq!(container_of("1 2\n\u{0} garbage"), None);
}

#[test]
fn every_part_of_a_machine_changes_its_id() {
    let parts = MachineParts {
        local: Some([1; 16]),
        system: Some("abc\n".to_owned()),
        container: None,
    };
    let same = MachineParts {
        system: Some("abc".to_owned()),
        ..parts.clone()
    };
    let others = [
        MachineParts {
            local: Some([2; 16]),
            ..parts.clone()
        },
        MachineParts {
            local: None,
            ..parts.clone()
        },
        MachineParts {
            system: Some("abd".to_owned()),
            ..parts.clone()
        },
        MachineParts {
            system: None,
            container: Some("abc".to_owned()),
            ..parts.clone()
        },
        MachineParts {
            container: Some("abc".to_owned()),
            ..parts.clone()
        },
    ];

    let mut ids: Vec<_> = others.iter().map(MachineParts::id).collect();
    ids.push(parts.id());

    assert_eq!(parts.id(), same.id(), "the end of the line does not count");
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), others.len() + 1, "all differ");
}

#[test]
fn the_login_name_is_found_by_the_user_id() {
    let users = "root:x:0:0:root:/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\nbad line\n";

    assert_eq!(user_of(users, 1000), Some("ann"));
    assert_eq!(user_of(users, 0), Some("root"));
    assert_eq!(user_of(users, 1), None);
}
