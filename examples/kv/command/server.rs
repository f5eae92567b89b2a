//! Commands that concern the connection or the server as a whole, and no key.

use crate::command::{Access, COMMANDS, Command, Route};
use crate::error::CommandError;
use crate::integer;
use crate::protocol::Arguments;
use crate::reply;
use crate::session::Session;

type Result = std::result::Result<(), CommandError>;

/// The version of Redis whose answers these are.
const REDIS_VERSION: &str = "7.0.15";

/// What programs ask about at their start, and what is true here.
const SETTINGS: [(&str, &str); 6] = [
    ("appendonly", "no"),
    ("databases", "1"),
    ("maxmemory", "0"),
    ("maxmemory-policy", "noeviction"),
    ("save", ""),
    ("timeout", "0"),
];

pub(crate) fn ping(_: &mut Session, arguments: Arguments<'_>, out: &mut Vec<u8>) -> Result {
    match arguments.first() {
        None => reply::status(out, "PONG"),
        Some(text) if arguments.len() == 1 => reply::bulk(out, text),
        Some(_) => return Err(CommandError::Arity("ping")),
    }
    Ok(())
}

pub(crate) fn echo(_: &mut Session, arguments: Arguments<'_>, out: &mut Vec<u8>) -> Result {
    reply::bulk(out, &arguments[0]);
    Ok(())
}

pub(crate) fn quit(session: &mut Session, _: Arguments<'_>, out: &mut Vec<u8>) -> Result {
    session.quit = true;
    out.extend_from_slice(reply::OK);
    Ok(())
}

pub(crate) fn select(_: &mut Session, arguments: Arguments<'_>, out: &mut Vec<u8>) -> Result {
    match integer::parse(&arguments[0]) {
        None => Err(CommandError::NotAnInteger),
        Some(0) => {
            out.extend_from_slice(reply::OK);
            Ok(())
        }
        Some(_) => Err(CommandError::DbIndex),
    }
}

pub(crate) fn hello(session: &mut Session, arguments: Arguments<'_>, out: &mut Vec<u8>) -> Result {
    if let Some(version) = arguments.first() {
        match integer::parse(version) {
            None => return Err(CommandError::ProtocolVersion),
            Some(2) => {}
            Some(_) => return Err(CommandError::ProtocolUnsupported),
        }
    }
    let mut options = arguments.skip(1);
    let mut name = None;
    while let Some(option) = options.first() {
        if !(option.eq_ignore_ascii_case(b"setname") && options.len() > 1) {
            return Err(CommandError::HelloOption(lossy(option)));
        }
        name = Some(client_name(&options[1])?.to_vec());
        options = options.skip(2);
    }
    if let Some(name) = name {
        session.name = name;
    }
    reply::array(out, 14);
    text(out, "server", "redis");
    text(out, "version", REDIS_VERSION);
    reply::bulk(out, b"proto");
    reply::integer(out, 2);
    reply::bulk(out, b"id");
    reply::integer(out, session.id);
    text(out, "mode", "standalone");
    text(out, "role", "master");
    reply::bulk(out, b"modules");
    reply::array(out, 0);
    Ok(())
}

pub(crate) fn client(session: &mut Session, arguments: Arguments<'_>, out: &mut Vec<u8>) -> Result {
    let subcommand = Subcommand::new("CLIENT", arguments);
    if subcommand.is("setname", 1, "client|setname")? {
        session.name = client_name(&arguments[1])?.to_vec();
        out.extend_from_slice(reply::OK);
    } else if subcommand.is("setinfo", 2, "client|setinfo")? {
        out.extend_from_slice(reply::OK);
    } else if subcommand.is("getname", 0, "client|getname")? {
        reply::bulk_or_nil(out, Some(&*session.name).filter(|name| !name.is_empty()));
    } else if subcommand.is("id", 0, "client|id")? {
        reply::integer(out, session.id);
    } else {
        return Err(subcommand.unknown());
    }
    Ok(())
}

pub(crate) fn config(_: &mut Session, arguments: Arguments<'_>, out: &mut Vec<u8>) -> Result {
    let subcommand = Subcommand::new("CONFIG", arguments);
    if !subcommand.word.eq_ignore_ascii_case(b"get") {
        return Err(subcommand.unknown());
    }
    let patterns = arguments.skip(1);
    if patterns.len() == 0 {
        return Err(CommandError::Arity("config|get"));
    }
    let asked = |name: &str| {
        let matches =
            |pattern: &[u8]| pattern == b"*" || pattern.eq_ignore_ascii_case(name.as_bytes());
        patterns.iter().any(matches)
    };
    let settings = || SETTINGS.iter().filter(|(name, _)| asked(name));
    reply::array(out, settings().count() * 2);
    for (name, value) in settings() {
        text(out, name, value);
    }
    Ok(())
}

pub(crate) fn info(session: &mut Session, _: Arguments<'_>, out: &mut Vec<u8>) -> Result {
    let server = &session.facts;
    let facts = format!(
        "# Server\r\nredis_version:{REDIS_VERSION}\r\nredis_mode:standalone\r\ntcp_port:{}\r\nshards:{}\r\n\
         backend:{}\r\n\r\n# Persistence\r\nloading:0\r\n\r\n# Replication\r\nrole:master\r\n",
        server.port, server.shards, server.backend,
    );
    reply::bulk(out, facts.as_bytes());
    Ok(())
}

pub(crate) fn command(_: &mut Session, arguments: Arguments<'_>, out: &mut Vec<u8>) -> Result {
    let names = arguments.skip(1);
    if arguments.len() == 0 {
        describe_all(out);
        return Ok(());
    }
    let subcommand = Subcommand::new("COMMAND", arguments);
    if subcommand.is("count", 0, "command|count")? {
        reply::count(out, COMMANDS.len());
    } else if subcommand.word.eq_ignore_ascii_case(b"docs") {
        // Clients take help from here; having none is an answer.
        reply::array(out, 0);
    } else if !subcommand.word.eq_ignore_ascii_case(b"info") {
        return Err(subcommand.unknown());
    } else if names.len() == 0 {
        describe_all(out);
    } else {
        reply::array(out, names.len());
        for name in names.iter() {
            match Command::find(name) {
                Some(command) => describe(command, out),
                None => out.extend_from_slice(reply::NIL),
            }
        }
    }
    Ok(())
}

fn describe_all(out: &mut Vec<u8>) {
    reply::array(out, COMMANDS.len());
    for command in COMMANDS {
        describe(command, out);
    }
}

/// Name, arity, flags, places of the keys, then categories, tips, key specifications and subcommands, none of which
/// are told.
fn describe(command: &Command, out: &mut Vec<u8>) {
    let (first, last, step) = match command.route {
        Route::Key(_) => (1, 1, 1),
        Route::EachKey { group: 2, .. } => (1, -1, 2),
        Route::EachKey { .. } => (1, -1, 1),
        Route::Connection(_) | Route::EveryShard { .. } => (0, 0, 0),
    };
    reply::array(out, 10);
    reply::bulk(out, command.name.as_bytes());
    reply::integer(out, command.arity.into());
    match command.access {
        Access::Nothing => reply::array(out, 0),
        Access::Read => flag(out, "readonly"),
        Access::Write => flag(out, "write"),
    }
    for place in [first, last, step] {
        reply::integer(out, place);
    }
    for _ in 0..4 {
        reply::array(out, 0);
    }
}

fn flag(out: &mut Vec<u8>, name: &str) {
    reply::array(out, 1);
    reply::status(out, name);
}

fn text(out: &mut Vec<u8>, name: &str, value: &str) {
    reply::bulk(out, name.as_bytes());
    reply::bulk(out, value.as_bytes());
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn client_name(name: &[u8]) -> std::result::Result<&[u8], CommandError> {
    if name.iter().all(u8::is_ascii_graphic) {
        Ok(name)
    } else {
        Err(CommandError::ClientName)
    }
}

/// The second word of a command that has several meanings.
#[derive(Clone, Copy)]
struct Subcommand<'a> {
    command: &'static str,
    word: &'a [u8],
    given: usize,
}

impl<'a> Subcommand<'a> {
    fn new(command: &'static str, arguments: Arguments<'a>) -> Self {
        Subcommand {
            command,
            word: arguments.first().unwrap_or_default(),
            given: arguments.skip(1).len(),
        }
    }

    /// Whether the word is `name`, which takes `count` arguments.
    fn is(
        self,
        name: &str,
        count: usize,
        full_name: &'static str,
    ) -> std::result::Result<bool, CommandError> {
        if !self.word.eq_ignore_ascii_case(name.as_bytes()) {
            Ok(false)
        } else if self.given == count {
            Ok(true)
        } else {
            Err(CommandError::Arity(full_name))
        }
    }

    fn unknown(self) -> CommandError {
        CommandError::Subcommand {
            command: self.command,
            given: lossy(self.word),
        }
    }
}
