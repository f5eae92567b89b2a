//! The key-value example as its clients meet it: a process, sockets and signals.

mod conversation;
#[path = "../../examples/kv/dialogues.rs"]
mod dialogues;
mod server;

use std::io::Write;
use std::net::Shutdown;
use std::os::unix::process::ExitStatusExt;

use conversation::Conversation;
use dialogues::{DIALOGUES, Dialogue, LAST_WORDS, OWN, OWN_LAST_WORDS};
use server::{Server, fail_to_start};

/// Holds a dialogue line by line, and once more in one pipeline.
fn check(address: &str, lines: Dialogue) {
    let mut client = Conversation::open(address);
    client.hears("FLUSHALL", "+OK\r\n");
    for (request, reply) in lines {
        client.hears(request, reply);
    }
    let requests: Vec<_> = lines.iter().map(|(request, _)| *request).collect();
    let replies: String = lines.iter().map(|(_, reply)| *reply).collect();
    let mut client = Conversation::open(address);
    client.hears("FLUSHALL", "+OK\r\n");
    client.hears(&requests.join("\r\n"), &replies);
    client.hears("PING", "+PONG\r\n");
}

/// Says something after which the server hangs up.
fn check_last_words(address: &str, ends: Dialogue) {
    let mut bystander = Conversation::open(address);
    for (request, last_words) in ends {
        let mut client = Conversation::open(address);
        client.hears("SET a 1", "+OK\r\n");
        client.say(&format!("GET a\r\n{request}"));
        assert_eq!(
            client.rest(),
            format!("$1\r\n1\r\n{last_words}"),
            "after {request:?}"
        );
        bystander.hears("GET a", "$1\r\n1\r\n");
    }
}

#[test]
fn dialogues_go_as_written_on_one_shard_and_on_two() {
    for shards in [1, 2] {
        let server = Server::start(shards);
        for dialogue in DIALOGUES {
            check(server.address(), dialogue);
        }
        check(server.address(), OWN);
        server.stop();
    }
}

#[test]
fn a_malformed_stream_ends_its_connection_and_no_other() {
    let server = Server::start(2);
    check_last_words(server.address(), LAST_WORDS);
    check_last_words(server.address(), OWN_LAST_WORDS);
    server.stop();
}

#[test]
#[ignore = "wants the address of a Redis 7.0 in KV_REFERENCE"]
fn redis_goes_as_written() {
    let address = std::env::var("KV_REFERENCE").expect("KV_REFERENCE names a server");
    for dialogue in DIALOGUES {
        check(&address, dialogue);
    }
    check_last_words(&address, LAST_WORDS);
}

#[test]
fn a_pipeline_over_all_shards_is_answered_in_order() {
    const KEYS: usize = 5000;
    let server = Server::start(2);
    let mut client = Conversation::open(server.address());
    let sets = (0..KEYS).map(|key| format!("SET key:{key} {key}\r\n"));
    let gets = (0..KEYS).map(|key| format!("GET key:{key}\r\n"));
    let requests: String = sets.chain(["DBSIZE\r\n".to_owned()]).chain(gets).collect();
    let values = (0..KEYS).map(|key| format!("${}\r\n{key}\r\n", key.to_string().len()));
    let replies: String = ["+OK\r\n".repeat(KEYS), format!(":{KEYS}\r\n")]
        .into_iter()
        .chain(values)
        .collect();
    client.hears(requests.trim_end(), &replies);
    server.stop();
}

#[test]
fn a_large_value_goes_in_and_out() {
    const BYTES: usize = 20 << 20;
    let server = Server::start(2);
    let mut client = Conversation::open(server.address());
    let value = "v".repeat(BYTES);
    client.hears(
        &format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${BYTES}\r\n{value}"),
        "+OK\r\n",
    );
    client.hears("STRLEN k", &format!(":{BYTES}\r\n"));
    client.hears("GET k", &format!("${BYTES}\r\n{value}\r\n"));
    server.stop();
}

#[test]
fn a_reader_that_waits_costs_no_more_memory_than_a_few_replies() {
    const BYTES: usize = 1 << 20;
    const READS: usize = 1000;
    let server = Server::start(1);
    let mut client = Conversation::open(server.address());
    client.hears(&format!("SET k {}", "v".repeat(BYTES / 32)), "+OK\r\n");
    for power in 0..5 {
        let bytes = (BYTES / 32) << (power + 1);
        let half = "v".repeat(bytes / 2);
        client.hears(
            &format!("*3\r\n$6\r\nAPPEND\r\n$1\r\nk\r\n${}\r\n{half}", half.len()),
            &format!(":{bytes}\r\n"),
        );
    }
    let before = server.resident_bytes();
    client.say("GET k\r\n".repeat(READS).trim_end());
    let reply_bytes = format!("${BYTES}\r\n").len() + BYTES + 2;
    for _ in 0..READS {
        assert!(server.resident_bytes() < before + 32 * BYTES);
        client.passes_over(reply_bytes);
    }
    client.hears("PING", "+PONG\r\n");
    server.stop();
}

#[test]
fn a_client_that_is_done_writing_still_reads_its_answers() {
    let server = Server::start(2);
    let mut client = Conversation::open(server.address());
    client.stream.write_all(b"SET a 1\r\nMGET a b\r\n").unwrap();
    client.stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(client.rest(), "+OK\r\n*2\r\n$1\r\n1\r\n$-1\r\n");
    server.stop();
}

#[test]
fn keys_end_without_being_looked_at() {
    let server = Server::start(2);
    let mut client = Conversation::open(server.address());
    client.hears("MSET a 1 b 2 c 3", "+OK\r\n");
    client.hears("PEXPIRE a 30\r\nPEXPIRE b 30", ":1\r\n:1\r\n");
    client.until("DBSIZE", ":1\r\n");
    client.hears("MGET a b c", "*3\r\n$-1\r\n$-1\r\n$1\r\n3\r\n");
    server.stop();
}

#[test]
fn a_stopped_server_exits_cleanly_with_clients_connected() {
    let server = Server::start(2);
    let mut idle = Conversation::open(server.address());
    idle.hears("PING", "+PONG\r\n");
    let mut half = Conversation::open(server.address());
    // One read has both, so that nothing waits unread when the connection is closed.
    half.hears("PING\r\n*2\r\n$3\r\nGET", "+PONG\r\n");
    server.stop();
    assert_eq!(idle.rest(), "");
    assert_eq!(half.rest(), "");
}

/// Makes `k` a value whose replies soon fill every buffer on their way; returns the reply.
fn set_large(client: &mut Conversation) -> String {
    const BYTES: usize = 4 << 20;
    let value = "v".repeat(BYTES);
    let set = format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${BYTES}\r\n{value}");
    client.hears(&set, "+OK\r\n");
    format!("${BYTES}\r\n{value}\r\n")
}

#[test]
fn a_stopped_server_first_answers_what_it_has_read() {
    const READS: usize = 20;
    let server = Server::start(2);
    let mut client = Conversation::open(server.address());
    let reply = set_large(&mut client);
    // So few bytes are one read, which has happened when its first answer is heard.
    client.hears("GET k\r\n".repeat(READS).trim_end(), &reply);
    server.begin_to_stop();
    assert!(client.rest() == reply.repeat(READS - 1));
    assert_eq!(server.exit_status().code(), Some(0));
}

#[test]
fn a_second_signal_ends_a_server_that_is_still_answering() {
    const SIGTERM: i32 = 15;
    let server = Server::start(2);
    let mut client = Conversation::open(server.address());
    let reply = set_large(&mut client);
    client.hears("GET k\r\n".repeat(20).trim_end(), &reply);
    server.begin_to_stop();
    server.signal();
    assert_eq!(server.exit_status().signal(), Some(SIGTERM));
}

#[test]
fn a_server_that_cannot_start_says_why() {
    let server = Server::start(1);
    for (arguments, cause) in [
        (["--addr", server.address()], "already in use"),
        (["--addr", "127.0.0.1:99999"], "invalid port"),
        (["--shards", "0"], "at least one shard"),
    ] {
        let (code, said) = fail_to_start(&arguments);
        assert_eq!(code, Some(1), "{arguments:?}: {said}");
        assert!(
            said.starts_with("kv: ") && said.contains(cause),
            "{arguments:?}: {said}"
        );
    }
    server.stop();
}
