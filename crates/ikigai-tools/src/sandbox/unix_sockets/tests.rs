use std::os::unix::net::UnixListener;

use super::*;

#[test]
fn the_kernel_says_which_sockets_listen_on_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    let server = UnixListener::bind(&path).unwrap();
    let socket = rustix::fs::fstat(&server).unwrap().st_ino;
    let file = rustix::fs::stat(&path).unwrap();

    let all = listening().unwrap();

    let found = all
        .iter()
        .find(|it| u64::from(it.socket) == socket)
        .unwrap();
    assert_eq!(u64::from(found.file), file.st_ino);
    assert!(found.is_on(file.st_dev));
    drop(server);
    let all = listening().unwrap();
    assert!(!all.iter().any(|it| u64::from(it.socket) == socket));
}

#[test]
fn only_files_on_which_own_sockets_alone_listen_are_reached() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    let _server = UnixListener::bind(&path).unwrap();
    let file = rustix::fs::open(&path, OFlags::PATH, Mode::empty()).unwrap();
    let status = rustix::fs::fstat(&file).unwrap();
    let file = SocketFile { file, status };
    let number = u32::try_from(status.st_ino & 0xffff_ffff).unwrap();
    let device = rustix::fs::major(status.st_dev) << 20 | rustix::fs::minor(status.st_dev);
    let listener = |socket, file, device| PathListener {
        socket,
        file,
        device,
    };
    let own = HashSet::from([1, 2]);

    let one = listener(1, number, device);
    assert_eq!(file.judge(&[one], &own), Ok(()));
    let foreign = listener(9, number, device);
    assert_eq!(file.judge(&[foreign], &own), Err(Errno::ACCESS));
    assert_eq!(file.judge(&[one, foreign], &own), Err(Errno::ACCESS));
    // The same number on another device says nothing about this file.
    let elsewhere = listener(2, number, device + 1);
    assert_eq!(file.judge(&[elsewhere], &own), Err(Errno::ACCESS));
    let foreign = listener(9, number, device + 1);
    assert_eq!(file.judge(&[one, foreign], &own), Err(Errno::ACCESS));
    assert_eq!(file.judge(&[], &own), Err(Errno::CONNREFUSED));
}

#[test]
fn answers_that_are_cut_off_say_nothing() {
    let mut listening = Vec::new();
    let mut packet = request();
    packet.truncate(20);

    assert_eq!(read_answers(&packet, &mut listening), Err(Errno::BADMSG));
    assert_eq!(read_answers(&[1, 2, 3], &mut listening), Ok(false));
    assert_eq!(read_listener(&[0; 12]), None);
    assert_eq!(read_listener(&[[0; 16], [255; 16]].concat()), None);
    assert_eq!(listening, []);
}
