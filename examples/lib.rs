//! Example programs, in the order in which to read them:
//!
//! * `hello`: one counter on another shard: spawn, tell, ask.
//! * `ring`: a token goes round a ring of actors spread over the shards.
//! * `kv`: a server that speaks the protocol of Redis, one actor per shard owning the keys.
//! * `echo_bench`: a request-response server, measured next to those on other runtimes.
