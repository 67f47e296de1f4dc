//! The block layer as a library.
