//! Dialogues: what a client says, line by line, and what it must hear.
//!
//! They are plain data, so that they can be held with the commands in memory, with the running server, and with any
//! other server that claims the same answers.

/// One dialogue on an empty server.
pub(crate) type Dialogue = &'static [(&'static str, &'static str)];

/// Answers that Redis 7.0 gives too.
pub(crate) const DIALOGUES: &[Dialogue] = &[
    CONNECTION, STRING, MANY_KEYS, LIST, HASH, SET, EXPIRY, QUOTES,
];

/// Answers in which this server differs: it has one database, RESP2 and no secrets.
pub(crate) const OWN: Dialogue = &[
    ("SELECT 1", "-ERR DB index is out of range\r\n"),
    ("HELLO 3", "-NOPROTO unsupported protocol version\r\n"),
    (
        "HELLO 2 AUTH a b",
        "-ERR Syntax error in HELLO option 'AUTH'\r\n",
    ),
    ("CLIENT SETINFO LIB-NAME x", "+OK\r\n"),
    (
        "CONFIG SET a b",
        "-ERR unknown subcommand 'SET'. Try CONFIG HELP.\r\n",
    ),
    ("COMMAND DOCS get", "*0\r\n"),
    (
        "COMMAND INFO mset",
        "*1\r\n*10\r\n$4\r\nmset\r\n:-3\r\n*1\r\n+write\r\n:1\r\n:-1\r\n:2\r\n*0\r\n*0\r\n*0\r\n*0\r\n",
    ),
    ("SADD s a b a c", ":3\r\n"),
    ("SMEMBERS s", "*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n"),
];

/// What ends a connection, and the last words it hears. Redis 7.0 says the same.
pub(crate) const LAST_WORDS: Dialogue = &[
    ("QUIT\r\nSET a 2\r\n", "+OK\r\n"),
    (
        "*x\r\n",
        "-ERR Protocol error: invalid multibulk length\r\n",
    ),
    (
        "*2147483648\r\n",
        "-ERR Protocol error: invalid multibulk length\r\n",
    ),
    (
        "*123456789012345678901234567890\r\n",
        "-ERR Protocol error: invalid multibulk length\r\n",
    ),
    (
        "*1\r\nfoo\r\n",
        "-ERR Protocol error: expected '$', got 'f'\r\n",
    ),
    (
        "*1\r\n$x\r\n",
        "-ERR Protocol error: invalid bulk length\r\n",
    ),
    (
        "*1\r\n$-1\r\n",
        "-ERR Protocol error: invalid bulk length\r\n",
    ),
    (
        "*1\r\n$01\r\n",
        "-ERR Protocol error: invalid bulk length\r\n",
    ),
    (
        "*1\r\n$536870913\r\n",
        "-ERR Protocol error: invalid bulk length\r\n",
    ),
    (
        "PING \"a\r\n",
        "-ERR Protocol error: unbalanced quotes in request\r\n",
    ),
    (
        "PING 'a'b\r\n",
        "-ERR Protocol error: unbalanced quotes in request\r\n",
    ),
];

/// What ends a connection here, and is taken or waited for by Redis 7.0.
pub(crate) const OWN_LAST_WORDS: Dialogue = &[
    (
        "*1048577\r\n",
        "-ERR Protocol error: invalid multibulk length\r\n",
    ),
    (
        "*1\r\n$4\r\nPINGxx",
        "-ERR Protocol error: bulk string without end of line\r\n",
    ),
];

const WRONG_TYPE: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n";
const NOT_INTEGER: &str = "-ERR value is not an integer or out of range\r\n";
const NOT_POSITIVE: &str = "-ERR value is out of range, must be positive\r\n";
const SYNTAX: &str = "-ERR syntax error\r\n";

const CONNECTION: Dialogue = &[
    ("PING", "+PONG\r\n"),
    ("ping hi", "$2\r\nhi\r\n"),
    (
        "PING a b",
        "-ERR wrong number of arguments for 'ping' command\r\n",
    ),
    ("ECHO 'a b'", "$3\r\na b\r\n"),
    (
        "ECHO",
        "-ERR wrong number of arguments for 'echo' command\r\n",
    ),
    ("SELECT 0", "+OK\r\n"),
    ("SELECT x", NOT_INTEGER),
    (
        "HELLO x",
        "-ERR Protocol version is not an integer or out of range\r\n",
    ),
    (
        "HELLO 2 AUTH",
        "-ERR Syntax error in HELLO option 'AUTH'\r\n",
    ),
    ("CLIENT GETNAME", "$-1\r\n"),
    ("CLIENT SETNAME me", "+OK\r\n"),
    ("CLIENT GETNAME", "$2\r\nme\r\n"),
    (
        "CLIENT SETNAME 'a b'",
        "-ERR Client names cannot contain spaces, newlines or special characters.\r\n",
    ),
    (
        "CLIENT FOO",
        "-ERR unknown subcommand 'FOO'. Try CLIENT HELP.\r\n",
    ),
    (
        "CLIENT SETNAME",
        "-ERR wrong number of arguments for 'client|setname' command\r\n",
    ),
    ("CONFIG GET save", "*2\r\n$4\r\nsave\r\n$0\r\n\r\n"),
    ("CONFIG GET none", "*0\r\n"),
    (
        "CONFIG GET",
        "-ERR wrong number of arguments for 'config|get' command\r\n",
    ),
    ("COMMAND INFO nosuch", "*1\r\n$-1\r\n"),
    ("", ""),
    (
        "foo",
        "-ERR unknown command 'foo', with args beginning with: \r\n",
    ),
    (
        "foo a \"b\\r\\n\"",
        "-ERR unknown command 'foo', with args beginning with: 'a' 'b  ' \r\n",
    ),
];

const STRING: Dialogue = &[
    ("GET a", "$-1\r\n"),
    ("SET a 1", "+OK\r\n"),
    ("GET a", "$1\r\n1\r\n"),
    (
        "get",
        "-ERR wrong number of arguments for 'get' command\r\n",
    ),
    ("SET a 2 NX", "$-1\r\n"),
    ("SET b 2 XX", "$-1\r\n"),
    ("SET a 2 XX", "+OK\r\n"),
    ("SET a 3 GET", "$1\r\n2\r\n"),
    ("SET a 4 NX GET", "$1\r\n3\r\n"),
    ("SET c 1 NX GET", "$-1\r\n"),
    ("SET a 1 NX XX", SYNTAX),
    ("SET a 1 EX", SYNTAX),
    ("SET a 1 EX 1 PX 1", SYNTAX),
    ("SET a 1 KEEPTTL EX 1", SYNTAX),
    ("SET a 1 FOO", SYNTAX),
    ("SET a 1 EX x", NOT_INTEGER),
    (
        "SET a 1 EX 0",
        "-ERR invalid expire time in 'set' command\r\n",
    ),
    (
        "SET a 1 PX 9223372036854775807",
        "-ERR invalid expire time in 'set' command\r\n",
    ),
    ("INCR a", ":4\r\n"),
    ("INCRBY a 10", ":14\r\n"),
    ("DECR a", ":13\r\n"),
    ("DECRBY a 20", ":-7\r\n"),
    ("INCRBY a x", NOT_INTEGER),
    ("INCR n", ":1\r\n"),
    ("SET n 9223372036854775807", "+OK\r\n"),
    ("INCR n", "-ERR increment or decrement would overflow\r\n"),
    (
        "DECRBY n -9223372036854775808",
        "-ERR decrement would overflow\r\n",
    ),
    ("SET n ' 1'", "+OK\r\n"),
    ("INCR n", NOT_INTEGER),
    ("APPEND t ab", ":2\r\n"),
    ("APPEND t cd", ":4\r\n"),
    ("STRLEN t", ":4\r\n"),
    ("STRLEN none", ":0\r\n"),
    ("GETDEL t", "$4\r\nabcd\r\n"),
    ("GETDEL t", "$-1\r\n"),
    ("RPUSH l x", ":1\r\n"),
    ("GET l", WRONG_TYPE),
    ("SET l 1 GET", WRONG_TYPE),
    ("INCR l", WRONG_TYPE),
    ("APPEND l x", WRONG_TYPE),
    ("STRLEN l", WRONG_TYPE),
    ("GETDEL l", WRONG_TYPE),
    ("SET l 1", "+OK\r\n"),
    ("TYPE l", "+string\r\n"),
];

const MANY_KEYS: Dialogue = &[
    ("MSET a 1 b 2 c 3 d 4 e 5", "+OK\r\n"),
    (
        "MSET a",
        "-ERR wrong number of arguments for 'mset' command\r\n",
    ),
    (
        "MSET a 1 b",
        "-ERR wrong number of arguments for 'mset' command\r\n",
    ),
    ("DBSIZE", ":5\r\n"),
    (
        "MGET a none c b a",
        "*5\r\n$1\r\n1\r\n$-1\r\n$1\r\n3\r\n$1\r\n2\r\n$1\r\n1\r\n",
    ),
    ("EXISTS a a none b", ":3\r\n"),
    ("DEL a a none b", ":2\r\n"),
    ("LPUSH l x", ":1\r\n"),
    ("MGET l c", "*2\r\n$-1\r\n$1\r\n3\r\n"),
    ("DBSIZE", ":4\r\n"),
    ("FLUSHALL FOO", SYNTAX),
    ("FLUSHDB a b", SYNTAX),
    (
        "DBSIZE 1",
        "-ERR wrong number of arguments for 'dbsize' command\r\n",
    ),
    ("FLUSHALL ASYNC", "+OK\r\n"),
    ("DBSIZE", ":0\r\n"),
    ("MSET x 1 y 2 z 3", "+OK\r\n"),
    ("FLUSHDB", "+OK\r\n"),
    ("EXISTS x y z", ":0\r\n"),
];

const LIST: Dialogue = &[
    ("LPUSH l b a", ":2\r\n"),
    ("RPUSH l c d", ":4\r\n"),
    ("LLEN l", ":4\r\n"),
    (
        "LRANGE l 0 -1",
        "*4\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n$1\r\nd\r\n",
    ),
    ("LRANGE l -2 9", "*2\r\n$1\r\nc\r\n$1\r\nd\r\n"),
    ("LRANGE l 3 1", "*0\r\n"),
    ("LRANGE l x 1", NOT_INTEGER),
    ("LPOP l", "$1\r\na\r\n"),
    ("RPOP l", "$1\r\nd\r\n"),
    ("LPOP l 0", "*0\r\n"),
    ("LPOP l -1", NOT_POSITIVE),
    ("LPOP l x", NOT_POSITIVE),
    (
        "LPOP l 1 2",
        "-ERR wrong number of arguments for 'lpop' command\r\n",
    ),
    ("RPOP l 9", "*2\r\n$1\r\nc\r\n$1\r\nb\r\n"),
    ("EXISTS l", ":0\r\n"),
    ("LPOP l", "$-1\r\n"),
    ("LPOP l 1", "*-1\r\n"),
    ("LRANGE l 0 1", "*0\r\n"),
    ("LLEN l", ":0\r\n"),
    ("SET s x", "+OK\r\n"),
    ("LPUSH s x", WRONG_TYPE),
    ("RPOP s", WRONG_TYPE),
    ("LLEN s", WRONG_TYPE),
    ("LRANGE s 0 1", WRONG_TYPE),
];

const HASH: Dialogue = &[
    ("HSET h a 1 b 2", ":2\r\n"),
    ("HSET h a 3 c 4", ":1\r\n"),
    (
        "HSET h a",
        "-ERR wrong number of arguments for 'hset' command\r\n",
    ),
    (
        "HSET h a 1 b",
        "-ERR wrong number of arguments for 'hset' command\r\n",
    ),
    ("HGET h a", "$1\r\n3\r\n"),
    ("HGET h x", "$-1\r\n"),
    ("HGET none x", "$-1\r\n"),
    (
        "HGETALL h",
        "*6\r\n$1\r\na\r\n$1\r\n3\r\n$1\r\nb\r\n$1\r\n2\r\n$1\r\nc\r\n$1\r\n4\r\n",
    ),
    ("HGETALL none", "*0\r\n"),
    ("HDEL h a a x", ":1\r\n"),
    ("HDEL h b c", ":2\r\n"),
    ("TYPE h", "+none\r\n"),
    ("HDEL h b", ":0\r\n"),
    ("SET s x", "+OK\r\n"),
    ("HSET s a 1", WRONG_TYPE),
    ("HGET s a", WRONG_TYPE),
    ("HDEL s a", WRONG_TYPE),
    ("HGETALL s", WRONG_TYPE),
    ("HSET g a 1", ":1\r\n"),
    ("TYPE g", "+hash\r\n"),
];

const SET: Dialogue = &[
    ("SADD s a b a", ":2\r\n"),
    ("SADD s b c", ":1\r\n"),
    ("SCARD s", ":3\r\n"),
    ("SCARD none", ":0\r\n"),
    ("SISMEMBER s a", ":1\r\n"),
    ("SISMEMBER s x", ":0\r\n"),
    ("SISMEMBER none x", ":0\r\n"),
    ("SREM s c x", ":1\r\n"),
    ("SPOP s -1", NOT_POSITIVE),
    ("SPOP s 1 2", SYNTAX),
    ("SPOP s 0", "*0\r\n"),
    ("SREM s a", ":1\r\n"),
    ("SPOP s", "$1\r\nb\r\n"),
    ("EXISTS s", ":0\r\n"),
    ("SPOP s", "$-1\r\n"),
    ("SPOP s 1", "*0\r\n"),
    ("SADD t x", ":1\r\n"),
    ("SPOP t 5", "*1\r\n$1\r\nx\r\n"),
    ("TYPE t", "+none\r\n"),
    ("SMEMBERS t", "*0\r\n"),
    ("LPUSH l x", ":1\r\n"),
    ("SADD l x", WRONG_TYPE),
    ("SPOP l", WRONG_TYPE),
    ("SCARD l", WRONG_TYPE),
    ("SMEMBERS l", WRONG_TYPE),
];

const EXPIRY: Dialogue = &[
    ("SET a 1 EX 10", "+OK\r\n"),
    ("TTL a", ":10\r\n"),
    ("PEXPIRE a 1499", ":1\r\n"),
    ("TTL a", ":1\r\n"),
    ("SET a 2 KEEPTTL", "+OK\r\n"),
    ("PERSIST a", ":1\r\n"),
    ("PERSIST a", ":0\r\n"),
    ("TTL a", ":-1\r\n"),
    ("TTL none", ":-2\r\n"),
    ("EXPIRE none 10", ":0\r\n"),
    ("EXPIRE a 10 XX", ":0\r\n"),
    ("EXPIRE a 10 NX", ":1\r\n"),
    ("EXPIRE a 5 GT", ":0\r\n"),
    ("EXPIRE a 5 LT", ":1\r\n"),
    ("EXPIRE a x", NOT_INTEGER),
    ("EXPIRE a 10 FOO", "-ERR Unsupported option FOO\r\n"),
    (
        "EXPIRE a 10 NX XX",
        "-ERR NX and XX, GT or LT options at the same time are not compatible\r\n",
    ),
    (
        "EXPIRE a 9223372036854775807",
        "-ERR invalid expire time in 'expire' command\r\n",
    ),
    ("EXPIRE a -1", ":1\r\n"),
    ("EXISTS a", ":0\r\n"),
];

const QUOTES: Dialogue = &[
    ("SET 'it\\'s' \"a\\x41\\n\\\"\"", "+OK\r\n"),
    ("GET \"it's\"", "$4\r\naA\n\"\r\n"),
    ("SET '' ''", "+OK\r\n"),
    ("GET \"\"", "$0\r\n\r\n"),
    ("\tECHO   a ", "$1\r\na\r\n"),
    ("ECHO a\"b c\"", "$4\r\nab c\r\n"),
];
