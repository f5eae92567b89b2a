//! Examples as their users meet them: processes with arguments, output and sockets.

mod bank;
mod chat;
mod supervision;
