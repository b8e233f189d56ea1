//! One partition log on disk.
