//! Every way of failing is produced, and says what failed: the actor, the method and the shard, where there are any.
//!
//! | variant | produced in |
//! |---|---|
//! | `CallError::Handler` | `calls::the_handlers_own_error_is_shown_as_it_is` |
//! | `CallError::Stopped` | `calls::an_ask_of_one_that_has_stopped` |
//! | `CallError::Overflowed` | `calls::an_ask_that_finds_no_room_and_may_not_wait` |
//! | `CallError::Killed` | `calls::an_ask_whose_handler_is_cut_off` |
//! | `CallError::Panicked` | `calls::an_ask_whose_handler_panics` |
//! | `CallError::Timeout`, sent, of the call | `calls::an_ask_that_is_not_answered_in_time` |
//! | `CallError::Timeout`, not sent | `calls::an_ask_that_has_no_room_in_time` |
//! | `CallError::Timeout`, of the system | `deadlines::an_ask_without_a_limit_has_the_systems` |
//! | `CallError::Timeout`, inherited | `calls::an_ask_that_has_the_time_of_another_one` |
//! | `CallError::NoReply` | `calls::an_ask_whose_reply_is_dropped` |
//! | `CallError::Cycle` | `calls::an_ask_that_closes_a_cycle` |
//! | `CallError::NotStarted` | `calls::an_ask_of_one_that_does_not_start` |
//! | `SendError`, stopped | `calls::a_tell_to_one_that_has_stopped` |
//! | `SendError`, full | `calls::a_tell_that_finds_no_room_and_does_not_wait` |
//! | `SendError`, full for ever | `calls::a_tell_that_closes_a_cycle` |
//! | `TellManyError`, `TellEachError` | `bulk`, `scatter` |
//! | `SpawnError`, no shard, shutting down | `starts::a_spawn_where_there_is_no_shard`, `starts::a_spawn_in_a_system_that_ends` |
//! | `SpawnError`, refused, panicked | `starts::a_spawn_whose_hook_refuses_or_panics` |
//! | `SpawnError`, name | `starts::a_spawn_under_a_name_that_is_taken` |
//! | `SpawnError`, cut | `starts::a_spawn_that_is_cut_off` |
//! | `SpawnError`, no parent | `starts::a_spawn_of_a_child_whose_parent_is_gone` |
//! | `RegisterError`, taken, ended | `starts::a_registration_that_fails` |
//! | `LookupError`, free, being made, elapsed, wrong type | `starts::a_lookup_that_fails` |
//! | `StartError` of what a builder was told | `starts::a_system_that_cannot_be_what_it_was_told_to_be` |
//! | `StartError`, panicked | `starts::a_shard_whose_hook_panics` |
//! | `StartError` of what the machine refuses | `refused_start` and `backend`, of the runtime's tests, in processes of their own |

mod calls;
mod places;
mod starts;

use std::fmt;

use greenroom::prelude::*;
use greenroom::{Actor, CallSite, Remote, ShardId};
use greenroom_tests::last_shard;

const ALL: &[usize] = &[1, 2, 4];

/// Makes a call from every shard and from outside, each time to an actor of its own on the last shard, and looks at what it
/// gives. `home` is where the error is to say that the actor is.
fn from_everywhere<A, F, Fut>(
    system: &System,
    make: fn() -> A,
    call: F,
    check: impl Fn(Fut::Output, Home),
) where
    A: Actor<Client<Remote<A>>: Send>,
    F: Fn(Addr<A>) -> Fut + Copy + Send + 'static,
    Fut: Future<Output: Send> + 'static,
{
    let spawn = || {
        let spawned = system.spawn_on(last_shard(system), make);
        system.block_on(spawned).unwrap()
    };
    for shard in system.shards() {
        let actor = spawn();
        let outcome = system.run_on(shard, move || call(actor));
        let home = Some(ShardId::from(last_shard(system)));
        check(outcome, Home(home, Addr::actor_id(actor)));
    }
    let actor = spawn();
    let outcome = system.block_on(call(actor));
    check(outcome, Home(None, Addr::actor_id(actor)));
}

/// The shard of an actor, as far as the caller knows it, and its number.
struct Home(Option<ShardId>, greenroom::ActorId);

impl Home {
    /// Checks that an error is about this call and says so.
    #[track_caller]
    fn check(&self, error: &dyn fmt::Display, site: &CallSite, method: &str, says: &str) {
        assert_eq!((site.actor(), site.method()), ("Culprit", method));
        assert_eq!(site.shard(), self.0);
        let text = error.to_string();
        let named = match self.0 {
            Some(shard) => format!("Culprit::{method} on {shard} {says}"),
            None => format!("Culprit::{method} of actor {} {says}", self.1),
        };
        assert!(text.starts_with(&named), "{text:?} is not {named:?}..");
    }

    #[track_caller]
    fn check_call<T: fmt::Debug>(&self, answer: Result<T, CallError>, method: &str, says: &str) {
        let error = answer.unwrap_err();
        self.check(&error, error.site().expect("a call"), method, says);
        assert_eq!(format!("{error:?}"), error.to_string());
    }
}
