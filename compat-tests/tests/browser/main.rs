//! The pages, in a real browser: the console of a broker, and the playground. And what the playground's process does
//! when it is asked for something that cannot be, or ends.

mod pages;
mod playground;
mod support;
