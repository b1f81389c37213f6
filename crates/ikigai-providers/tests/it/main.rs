//! Tests of the providers through their public face.
mod transport;
