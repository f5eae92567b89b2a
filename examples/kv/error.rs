//! Why a command was refused, in the words clients match on.

use std::fmt;

/// A command did nothing but answer with an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CommandError {
    WrongType,
    NotAnInteger,
    NotPositive,
    Overflow,
    DecrementOverflow,
    Syntax,
    StringTooLong,
    DbIndex,
    ClientName,
    ProtocolVersion,
    ProtocolUnsupported,
    ExpireExclusive,
    ExpireGreaterLess,
    /// The command, and its subcommand behind a bar.
    Arity(&'static str),
    ExpireTime(&'static str),
    ExpireOption(String),
    HelloOption(String),
    Subcommand {
        command: &'static str,
        given: String,
    },
    /// The name, and the arguments quoted.
    Unknown(String, String),
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CommandError::WrongType => {
                "WRONGTYPE Operation against a key holding the wrong kind of value"
            }
            CommandError::NotAnInteger => "ERR value is not an integer or out of range",
            CommandError::NotPositive => "ERR value is out of range, must be positive",
            CommandError::Overflow => "ERR increment or decrement would overflow",
            CommandError::DecrementOverflow => "ERR decrement would overflow",
            CommandError::Syntax => "ERR syntax error",
            CommandError::StringTooLong => {
                "ERR string exceeds maximum allowed size (proto-max-bulk-len)"
            }
            CommandError::DbIndex => "ERR DB index is out of range",
            CommandError::ClientName => {
                "ERR Client names cannot contain spaces, newlines or special characters."
            }
            CommandError::ProtocolVersion => {
                "ERR Protocol version is not an integer or out of range"
            }
            CommandError::ProtocolUnsupported => "NOPROTO unsupported protocol version",
            CommandError::ExpireExclusive => {
                "ERR NX and XX, GT or LT options at the same time are not compatible"
            }
            CommandError::ExpireGreaterLess => {
                "ERR GT and LT options at the same time are not compatible"
            }
            CommandError::Arity(name) => {
                return write!(f, "ERR wrong number of arguments for '{name}' command");
            }
            CommandError::ExpireTime(name) => {
                return write!(f, "ERR invalid expire time in '{name}' command");
            }
            CommandError::ExpireOption(option) => {
                return write!(f, "ERR Unsupported option {option}");
            }
            CommandError::HelloOption(option) => {
                return write!(f, "ERR Syntax error in HELLO option '{option}'");
            }
            CommandError::Subcommand { command, given } => {
                return write!(f, "ERR unknown subcommand '{given}'. Try {command} HELP.");
            }
            CommandError::Unknown(name, arguments) => {
                return write!(
                    f,
                    "ERR unknown command '{name}', with args beginning with: {arguments}"
                );
            }
        })
    }
}
