//! Conversations of a client with keyspaces, without I/O: the commands as the client sees them.

use std::sync::Arc;

use proptest::prelude::*;

use crate::client::{Client, Next};
use crate::dialogues::{DIALOGUES, Dialogue, LAST_WORDS, OWN, OWN_LAST_WORDS};
use crate::keyspace::Keyspace;
use crate::pipeline::Merged;
use crate::routing::{Routing, ShardIndex};
use crate::session::{Facts, Session};

/// A client and the shards it talks to.
struct Conversation {
    client: Client,
    keyspaces: Vec<Keyspace>,
    closed: bool,
}

impl Conversation {
    fn new(shards: ShardIndex) -> Self {
        let facts = Facts {
            shards: shards.into(),
            backend: "none",
            port: 0,
        };
        let mut conversation = Conversation {
            client: Client::new(Session::new(1, Arc::new(facts)), Routing::new(shards)),
            keyspaces: (0..shards)
                .map(|shard| Keyspace::new(shard.into()))
                .collect(),
            closed: false,
        };
        conversation.set_time(1_000_000);
        conversation
    }

    fn set_time(&mut self, now_ms: u64) {
        for keyspace in &mut self.keyspaces {
            keyspace.advance(now_ms);
        }
    }

    fn say(&mut self, bytes: &[u8]) -> Vec<u8> {
        assert!(!self.closed, "nobody listens any more");
        self.closed = self.client.receive(bytes) == Next::Close;
        let pipeline = &mut self.client.pipeline;
        let mut out = Vec::new();
        let mut due: Vec<_> = pipeline.shards(0).collect();
        loop {
            for shard in due.drain(..) {
                let mut batch = pipeline.take(shard);
                batch.execute(&mut self.keyspaces[usize::from(shard)]);
                pipeline.put_back(shard, batch);
            }
            match pipeline.merge(&mut out) {
                Merged::All => return out,
                Merged::Until(shard) => due.push(shard),
            }
        }
    }

    fn hears(&mut self, request: &str, reply: &str) {
        let heard = self.say(format!("{request}\r\n").as_bytes());
        let heard = heard.escape_ascii().to_string();
        assert_eq!(
            heard,
            reply.as_bytes().escape_ascii().to_string(),
            "after {request:?}"
        );
    }
}

/// Holds a dialogue with servers of several sizes.
fn check(lines: Dialogue) {
    for shards in [1, 2, 7] {
        let mut conversation = Conversation::new(shards);
        for (request, reply) in lines {
            conversation.hears(request, reply);
        }
        // The same in one pipeline.
        let requests: String = lines
            .iter()
            .map(|(request, _)| format!("{request}\r\n"))
            .collect();
        let replies: String = lines.iter().map(|(_, reply)| *reply).collect();
        let heard = Conversation::new(shards).say(requests.as_bytes());
        assert_eq!(
            heard.escape_ascii().to_string(),
            replies.as_bytes().escape_ascii().to_string()
        );
    }
}

#[test]
fn dialogues_go_as_written() {
    for dialogue in DIALOGUES {
        check(dialogue);
    }
    check(OWN);
}

#[test]
fn a_client_is_told_who_it_is_and_how_long_keys_last() {
    check(&[
        ("CLIENT ID", ":1\r\n"),
        ("SET a 1 EX 10", "+OK\r\n"),
        ("PTTL a", ":10000\r\n"),
        ("PEXPIRE a 1500", ":1\r\n"),
        ("PTTL a", ":1500\r\n"),
        ("TTL a", ":2\r\n"),
    ]);
}

#[test]
fn time_ends_keys_of_every_shard() {
    let mut conversation = Conversation::new(3);
    conversation.hears("MSET a 1 b 2 c 3 d 4", "+OK\r\n");
    for key in ["a", "b", "c"] {
        conversation.hears(&format!("PEXPIRE {key} 100"), ":1\r\n");
    }
    conversation.set_time(1_000_099);
    conversation.hears("DBSIZE", ":4\r\n");
    conversation.set_time(1_000_100);
    conversation.hears("DBSIZE", ":1\r\n");
    conversation.hears("MGET a b c d", "*4\r\n$-1\r\n$-1\r\n$-1\r\n$1\r\n4\r\n");
}

#[test]
fn a_client_that_quits_or_errs_is_answered_and_closed() {
    for (request, reply) in LAST_WORDS.iter().chain(OWN_LAST_WORDS) {
        let mut conversation = Conversation::new(2);
        conversation.hears("SET a 1", "+OK\r\n");
        let heard = conversation.say(format!("GET a\r\n{request}").as_bytes());
        let expected = format!("$1\r\n1\r\n{reply}");
        assert_eq!(
            heard.escape_ascii().to_string(),
            expected.as_bytes().escape_ascii().to_string()
        );
        assert!(conversation.closed);
    }
}

#[test]
fn an_endless_line_is_refused() {
    let mut conversation = Conversation::new(1);
    let mut heard = Vec::new();
    for _ in 0..65 {
        assert!(heard.is_empty());
        heard = conversation.say(&[b'a'; 1024]);
    }
    assert_eq!(heard, b"-ERR Protocol error: too big inline request\r\n");
    assert!(conversation.closed);
}

#[test]
fn nothing_asks_for_nothing() {
    let mut conversation = Conversation::new(2);
    assert_eq!(
        conversation.say(b"*0\r\n*-1\r\n\r\n\n   \r\nPING\r\n"),
        b"+PONG\r\n"
    );
}

#[test]
fn large_replies_come_in_the_order_of_the_commands() {
    let mut conversation = Conversation::new(3);
    let mut expected = Vec::new();
    for key in 0..6u8 {
        let value = [b'a' + key; 100_000];
        let key = [b'0' + key];
        let mut set = b"*3\r\n$3\r\nSET\r\n$1\r\n".to_vec();
        set.extend_from_slice(&key);
        set.extend_from_slice(b"\r\n$100000\r\n");
        set.extend_from_slice(&value);
        set.extend_from_slice(b"\r\n");
        assert_eq!(conversation.say(&set), b"+OK\r\n");
    }
    let mut request = Vec::new();
    for _ in 0..3 {
        request.extend_from_slice(b"MGET 0 1 2 3 4 5\r\nDBSIZE\r\n");
        expected.extend_from_slice(b"*6\r\n");
        for key in 0..6u8 {
            expected.extend_from_slice(b"$100000\r\n");
            expected.extend_from_slice(&[b'a' + key; 100_000]);
            expected.extend_from_slice(b"\r\n");
        }
        expected.extend_from_slice(b":6\r\n");
    }
    assert!(conversation.say(&request) == expected);
}

/// A command of any words, some of them commands.
fn words() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let name = prop::sample::select(vec![
        "SET", "get", "MGET", "MSET", "DEL", "INCR", "DBSIZE", "LPUSH", "SADD", "foo",
    ]);
    let name = name.prop_map(|name| name.as_bytes().to_vec());
    let argument = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..20),
        prop::sample::select(vec![
            b"a".to_vec(),
            b"b".to_vec(),
            b"c".to_vec(),
            b"1".to_vec()
        ]),
    ];
    (name, prop::collection::vec(argument, 0..6)).prop_map(|(name, arguments)| {
        let mut words = vec![name];
        words.extend(arguments);
        words
    })
}

/// Writes a command as an array of strings, or as a line when it says so and can be.
fn encode(words: &[Vec<u8>], inline: bool) -> Vec<u8> {
    let mut out = Vec::new();
    let plain = |word: &Vec<u8>| !word.is_empty() && word.iter().all(u8::is_ascii_alphanumeric);
    if inline && words.iter().all(plain) {
        out.extend_from_slice(&words.join(&b' '));
        out.extend_from_slice(b"\r\n");
        return out;
    }
    crate::reply::array(&mut out, words.len());
    for word in words {
        crate::reply::bulk(&mut out, word);
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_split_of_the_stream_gives_the_same_replies(
        commands in prop::collection::vec((words(), any::<bool>()), 1..20),
        noise in prop::collection::vec(any::<u8>(), 0..8),
        reads in prop::collection::vec(1usize..60, 1..20),
        shards in 1u16..5,
    ) {
        let mut stream: Vec<u8> = commands.iter().flat_map(|(words, inline)| encode(words, *inline)).collect();
        stream.extend_from_slice(&noise);
        let whole = Conversation::new(1).say(&stream);

        let mut conversation = Conversation::new(shards);
        let mut heard = Vec::new();
        let mut sizes = reads.iter().cycle();
        let mut rest = stream.as_slice();
        while !rest.is_empty() && !conversation.closed {
            let (read, after) = rest.split_at(rest.len().min(*sizes.next().unwrap()));
            heard.extend(conversation.say(read));
            rest = after;
        }
        prop_assert_eq!(heard.escape_ascii().to_string(), whole.escape_ascii().to_string());
    }

    #[test]
    fn no_bytes_make_the_server_panic(stream in prop::collection::vec(
        prop_oneof![any::<u8>(), prop::sample::select(b"*$\r\n0123456789-'\"\\x ".to_vec())], 0..200,
    )) {
        let heard = Conversation::new(2).say(&stream);
        prop_assert!(heard.is_empty() || heard.ends_with(b"\r\n"));
    }
}
