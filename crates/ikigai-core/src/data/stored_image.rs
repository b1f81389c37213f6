//! Reference to an image that the model sees.

use crate::json::data_type;

data_type! {
    /// An image: a blob with its media type and size.
    StoredImage {
        /// Hash of the bytes.
        hash: String,
        /// Media type, such as `image/png`.
        r#type: String,
        /// Number of bytes.
        bytes: u64,
        /// Width in pixels.
        width: u32,
        /// Height in pixels.
        height: u32,
    }
}
