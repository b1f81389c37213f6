use image::{Rgb, RgbImage};

use super::*;

/// Encodes an image whose pixels compress badly if it is `noisy`.
fn encoded(width: u32, height: u32, noisy: bool, format: ImageFormat) -> Vec<u8> {
    let mut state = 1_u32;
    let image = RgbImage::from_fn(width, height, |_, _| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let [_, red, green, blue] = state.to_be_bytes();
        Rgb(if noisy { [red, green, blue] } else { [9, 9, 9] })
    });
    let mut bytes = Cursor::new(Vec::new());
    DynamicImage::from(image)
        .write_to(&mut bytes, format)
        .unwrap();
    bytes.into_inner()
}

#[test]
fn small_images_of_all_formats_are_sent_as_they_are() {
    for (format, media_type, name) in FORMATS {
        let bytes = encoded(30, 20, false, format);

        let image = prepare(bytes.clone()).unwrap();

        assert!(is_image(&bytes));
        assert_eq!(image.bytes, bytes, "{name}");
        assert_eq!(image.media_type, media_type);
        assert_eq!((image.width, image.height), (30, 20));
        let start = format!("{name}, 30 × 20 pixels, ");
        assert!(image.description.starts_with(&start), "{image:?}");
    }
}

#[test]
fn large_images_are_made_smaller() {
    let wide = prepare(encoded(3_136, 100, false, ImageFormat::Png)).unwrap();
    let noisy = prepare(encoded(700, 700, true, ImageFormat::Png)).unwrap();

    assert_eq!((wide.width, wide.height), (1_568, 50));
    assert_eq!(wide.media_type, "image/png");
    assert!(
        wide.description.contains("3136 × 100 pixels")
            && wide.description.ends_with("sent with 1568 × 50 pixels"),
        "{}",
        wide.description
    );
    assert_eq!((noisy.width, noisy.height), (700, 700));
    assert_eq!(noisy.media_type, "image/jpeg");
    assert!(noisy.bytes.len() <= MOST_BYTES, "{}", noisy.bytes.len());
    for image in [wide, noisy] {
        let again = prepare(image.bytes.clone()).unwrap();
        assert_eq!(again.bytes, image.bytes);
    }
}

#[test]
fn hostile_and_damaged_images_are_refused() {
    let whole = encoded(30, 20, false, ImageFormat::Png);
    let mut huge = whole.clone();
    // Width and height of the header, whose checksum is not looked at first.
    huge[16..24].copy_from_slice(&[0x7f, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff]);
    let reason = |bytes: &[u8]| prepare(bytes.to_vec()).unwrap_err();

    assert!(reason(&whole[..whole.len() / 2]).starts_with("is a damaged PNG image: "));
    assert!(reason(&huge).starts_with("is a damaged PNG image: "));
    assert_eq!(reason(b"text"), "is not a PNG, JPEG, GIF or WebP image");
    assert_eq!(reason(b"BM\0\0"), "is not a PNG, JPEG, GIF or WebP image");
    for end in 0..whole.len() {
        let _ = prepare(whole[..end].to_vec());
    }
}
