//! Files and directories, through the public API.

mod dir;
mod file;
mod limits;
mod model;
mod paths;
mod stream;
mod support;
