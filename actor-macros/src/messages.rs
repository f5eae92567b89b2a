//! Every text that `#[actor]` shows to its user.
//!
//! One table, so that the tone stays the same and a reviewer sees all of it at once. A text names
//! what is wrong and what to write instead. A line that starts with `\n  = help:` is printed by
//! rustc under the text, like a help of its own.

use crate::args::CountTexts;

/// Follows a text about a method that became a message only because it is visible.
pub(crate) const HINT_NOT_A_MESSAGE: &str =
    "\n  = help: if this method is not a message, make it private or mark it `#[skip]`";

// The block.

pub(crate) const ON_TYPE: &str =
    "`#[actor]` goes on an `impl` block, not on the type: its methods become the messages";
pub(crate) const ON_OTHER_ITEM: &str = "`#[actor]` goes on an inherent `impl` block";
pub(crate) const TRAIT_IMPL: &str =
    "`#[actor]` needs an inherent `impl` block; a trait impl cannot define messages";
pub(crate) const LIFETIME_PARAMETER: &str =
    "an actor owns its state and must be `'static`; lifetime parameters are not supported";
pub(crate) const UNNAMED_TYPE: &str =
    "`#[actor]` needs a named type here, such as `Counter` or `Cache<K>`";
pub(crate) const PRIMITIVE_TYPE: &str =
    "an actor is a type of this crate: put the primitive into one, as in `struct Counter(u64);`";
pub(crate) const NO_MESSAGES: &str = "this actor has no messages: mark methods `pub` or \
     `#[message]` to make them callable through `Addr`";

// The options of `#[actor(..)]`, and of the attributes of functions.

pub(crate) const OPTION_NAME_EXPECTED: &str = "expected the name of an option";
pub(crate) const OPTION_END_EXPECTED: &str =
    "the value of this option ends here: expected a comma, or the end of the options";
pub(crate) const MAILBOX_TEXTS: CountTexts = CountTexts {
    zero: "a mailbox needs room for at least one message",
    not_a_number: "`mailbox` takes a number of messages, a `usize` constant, or `unbounded`",
};
pub(crate) const OVERFLOW_UNBOUNDED: &str =
    "an unbounded mailbox never overflows: leave `overflow` out, or give the mailbox a number";
pub(crate) const MAX_MESSAGE_TEXTS: CountTexts = CountTexts {
    zero: "`max_message` counts the bytes of a message's arguments: a limit of 0 leaves no room \
           for any",
    not_a_number: "`max_message` takes a number of bytes, a `usize` constant",
};
pub(crate) const CONCURRENT_TEXTS: CountTexts = CountTexts {
    zero: "at least one concurrent message must be able to run",
    not_a_number: "`concurrent` takes the number of messages that may run side by side, a `usize` \
                   constant",
};
pub(crate) const CONCURRENT_UNUSED: &str = "`concurrent` bounds the messages that run side by \
     side, but no message of this actor is marked `#[message(concurrent)]`";
pub(crate) const TRAIT_NOT_A_NAME: &str = "`trait` takes the name of the trait that is to be \
     declared, such as `trait = CounterApi` or `trait = pub(crate) CounterApi`";
pub(crate) const TRAIT_NAMED_LIKE_THE_ACTOR: &str = "the trait is declared beside the actor and \
     needs a name of its own, such as `trait = CounterApi`";
pub(crate) const IMPLEMENTS_NOT_A_TRAIT: &str = "`implements` takes a trait that another actor \
     declares, such as `implements = Speaker`, or `implements = Speaker(speak, hush)` if it has not \
     all of the messages";
pub(crate) const TRAIT_WITHOUT_CALLS: &str = "this trait would have no methods: it has the \
     messages that can be sent from any shard, and this actor has none";
pub(crate) const NAME_NOT_A_STRING: &str = "`name` takes a string, such as \"counter\"";
pub(crate) const NAME_EMPTY: &str = "the name of an actor cannot be empty";
pub(crate) const CRATE_NOT_A_PATH: &str =
    "`crate` takes the path of the `greenroom` crate, such as `crate = ::my_crate::greenroom`";

pub(crate) const KEY_IS_NO_OPTION: &str = "`key` is no option: an actor for each key is chosen where \
     actors are started, with `system.keyed(..)`\n  = help: the parameter by whose value a message \
     finds its shard is marked `#[key]`";
pub(crate) const PER_SHARD_IS_NO_OPTION: &str = "`per_shard` is no option: one instance on every \
     shard is chosen where actors are started, with `system.spawn_sharded(..)`\n  = help: the \
     parameter by whose value a message finds its shard is marked `#[key]`";

pub(crate) fn unknown_option(found: &str, nearest: Option<&str>, known: &[&str]) -> String {
    let known = known.join(", ");
    match nearest {
        Some(nearest) => {
            format!("unknown option `{found}`; did you mean `{nearest}`? (options: {known})")
        }
        None => format!("unknown option `{found}` (options: {known})"),
    }
}

pub(crate) fn unknown_trait_message(found: &str, nearest: Option<&str>) -> String {
    let text = format!("this actor has no message `{found}` that can be sent from any shard");
    match nearest {
        Some(nearest) => format!("{text}; did you mean `{nearest}`?"),
        None => text,
    }
}

pub(crate) fn overflow_form(known: &[&str]) -> String {
    format!("`overflow` takes one of: {}", known.join(", "))
}

pub(crate) fn unknown_overflow(found: &str, nearest: Option<&str>, known: &[&str]) -> String {
    let known = known.join(", ");
    match nearest {
        Some(nearest) => {
            format!(
                "unknown overflow policy `{found}`; did you mean `{nearest}`? (policies: {known})"
            )
        }
        None => format!("unknown overflow policy `{found}` (policies: {known})"),
    }
}

pub(crate) fn option_given_twice(name: &str) -> String {
    format!("`{name}` is given twice")
}

pub(crate) fn option_without_value(name: &str) -> String {
    format!("`{name}` needs a value: write `{name} = ..`")
}

// The markers on methods.

pub(crate) const TWO_ROLES: &str =
    "a method has one role: keep only one of `#[message]`, `#[every(..)]`, `#[skip]`, `#[on(..)]`";
pub(crate) const SKIP_ARGUMENTS: &str = "`#[skip]` takes no arguments";
pub(crate) const ON_WITHOUT_EVENT: &str =
    "`#[on(..)]` names one event, such as `#[on(started)]` or `#[on(stopping)]`";
pub(crate) const MESSAGE_FORM: &str = "write `#[message]`, or `#[message(..)]` with options: batch, boxed, concurrent, local, plain, \
     result, urgent";
pub(crate) const BATCH_NOT_A_NUMBER: &str =
    "`batch` takes the most messages of a batch, two or more: write `batch = 256`";
pub(crate) const BATCH_AND_OTHERS: &str =
    "`batch` goes with `local`, `plain`, `result` and `urgent` only";
pub(crate) const BATCH_PARAMETER: &str = "a `#[message(batch)]` handler takes one `Batch<_>`, and \
     the context if it likes: write `Batch<T>`, or `Batch<(T, U)>` for calls with several arguments";
pub(crate) const BATCH_REPLY: &str =
    "each message of a batch has a reply of its own: write `Batch<(T, Reply<R>)>`";
pub(crate) const PLAIN_AND_RESULT: &str = "`plain` and `result` exclude each other: a reply is \
     either flattened into the caller's `Result` or left as it is";

pub(crate) fn option_with_value(name: &str) -> String {
    format!("`{name}` takes no value")
}

pub(crate) fn unknown_message_option(nearest: Option<&str>, known: &[&str]) -> String {
    let known = known.join(", ");
    match nearest {
        Some(nearest) => {
            format!("unknown `#[message]` option; did you mean `{nearest}`? (options: {known})")
        }
        None => format!("unknown `#[message]` option (options: {known})"),
    }
}

pub(crate) fn unknown_event(found: &str, nearest: Option<&str>, known: &[&str]) -> String {
    let known = known.join(", ");
    match nearest {
        Some(nearest) => {
            format!("unknown event `{found}`; did you mean `{nearest}`? (events: {known})")
        }
        None => format!("unknown event `{found}` (events: {known})"),
    }
}

pub(crate) fn parameter_marker_outside(marker: &str) -> String {
    format!("`#[{marker}]` marks a parameter of a message, and this method is none")
}

pub(crate) fn parameter_marker_arguments(marker: &str) -> String {
    format!("`#[{marker}]` takes no arguments")
}

pub(crate) fn marker_in_cfg_attr(marker: &str) -> String {
    format!(
        "`#[{marker}]` cannot be applied through `cfg_attr`: `#[actor]` runs before it is \
         expanded; put `#[cfg(..)]` on the method instead"
    )
}

pub(crate) fn marker_on_other_item(marker: &str) -> String {
    format!("`#[{marker}]` marks a method, not another kind of item")
}

pub(crate) fn marker_outside(marker: &str) -> String {
    format!("`#[{marker}]` is only meaningful on a method inside an `#[actor] impl` block")
}

pub(crate) const EVERY_WITHOUT_PERIOD: &str = "`#[every(..)]` begins with a period: \
     write `#[every(100ms)]` or `#[every(Duration::from_secs(5))]`";
pub(crate) const EVERY_NOT_A_PERIOD: &str =
    "a period is a number with a unit, such as `100ms`, or an expression of type `Duration`";
pub(crate) const EVERY_TOO_LONG: &str = "this period is longer than 584 years";
pub(crate) const EVERY_TOO_SHORT: &str = "the shortest period is 1ms, the resolution of timers";
pub(crate) const EVERY_OPTION: &str =
    "the only option of `#[every(..)]` is `missed = skip`, `missed = burst` or `missed = delay`";
pub(crate) const EVERY_WITH_SELF: &str = "the period is known before there is an actor: for one \
     that depends on its state call `ctx.every(..)` in an `#[on(started)]` hook";
pub(crate) const EVERY_PARAMETER: &str =
    "a method that is called by a timer takes no parameters besides `&mut Ctx<Self>`";

pub(crate) fn every_without_unit(number: &str) -> String {
    format!("a period needs a unit: write `{number}ms`, or `us`, `s`, `min`, `h`")
}

pub(crate) fn unknown_missed(found: &str, nearest: Option<&str>, known: &[&str]) -> String {
    let known = known.join(", ");
    match nearest {
        Some(nearest) => {
            format!("unknown policy `{found}`; did you mean `{nearest}`? (policies: {known})")
        }
        None => format!("unknown policy `{found}` (policies: {known})"),
    }
}

// What a message may be.

pub(crate) const SELF_BY_VALUE: &str = "a message borrows the actor: use `&self` or `&mut self`; \
     to end the actor call `ctx.stop()`";
pub(crate) const SELF_TYPED: &str = "a message takes plain `&self` or `&mut self`";
pub(crate) const UNSAFE_MESSAGE: &str =
    "a message cannot be `unsafe`: the generated call would be safe";
pub(crate) const CONST_MESSAGE: &str = "a message cannot be `const fn`";
pub(crate) const EXTERN_MESSAGE: &str = "a message cannot be `extern`";
pub(crate) const CONCURRENT_MUT: &str = "a concurrent message takes `&self`: it shares the actor \
     with the messages that run beside it";
pub(crate) const CONCURRENT_SYNC: &str = "a concurrent message is an `async fn`: a handler that \
     never waits leaves nothing to run beside it";
pub(crate) const BOXED_WITHOUT_ARGUMENTS: &str =
    "`#[message(boxed)]` keeps the arguments in a box, but this message has none";
pub(crate) const GENERIC_MESSAGE: &str = "a message cannot be generic: every message is one \
     variant of the actor's message type";
pub(crate) const BOUNDS_ON_MESSAGE: &str =
    "a message cannot have bounds of its own: put them on the `impl` block";
pub(crate) const DUNDER_NAME: &str = "names starting with `__` are reserved for `#[actor]`";

pub(crate) fn message_without_self(name: &str) -> String {
    format!("message `{name}` must take `&self` or `&mut self`")
}

pub(crate) fn reserved_name(name: &str) -> String {
    format!("a message cannot be called `{name}`: `Addr::{name}` would hide it")
}

// What a parameter may be.

pub(crate) const BORROWED_PARAMETER: &str = "message parameters must be owned";
pub(crate) const HELP_CONTEXT_IS_MUT: &str =
    "\n  = help: the actor context is taken as `&mut Ctx<Self>`";
pub(crate) const HIDDEN_LIFETIME: &str = "a message owns its data, and this type borrows: write \
     its lifetime out as `'static`, or take an owned type";
pub(crate) const CONTEXT_BY_VALUE: &str = "the actor context is taken as `&mut Ctx<Self>`";
pub(crate) const CONTEXT_TWICE: &str = "a message takes the actor context at most once";
pub(crate) const REPLY_TWICE: &str = "a message has at most one `Reply<_>` parameter";
pub(crate) const IMPL_TRAIT_PARAMETER: &str =
    "`impl Trait` parameters are not supported in messages: name a concrete type";
pub(crate) const HELP_INTO: &str =
    "\n  = help: a parameter `#[into] name: T` lets the call take any `impl Into<T>`";
pub(crate) const SELF_IN_TYPE_MACRO: &str =
    "`Self` inside a type macro cannot be resolved here: name the actor type";
pub(crate) const RAW_POINTER: &str = "raw pointers cannot cross shards; mark the method \
     `#[message(local)]` or wrap the pointer in a `Send` type";
pub(crate) const KEY_TWICE: &str = "a message has at most one `#[key]`: let one parameter, a tuple \
     or a struct, hold all that belongs to the key";
pub(crate) const KEY_OF_LOCAL: &str = "a key leads to the shard that owns it, and a \
     `#[message(local)]` stays on the shard where it is sent";
pub(crate) const CFG_ON_PARAMETER: &str =
    "`cfg` on a message parameter is not supported; put it on the whole method";

pub(crate) fn marker_not_on_an_argument(marker: &str) -> String {
    let does = match marker {
        "key" => "chooses the instance by",
        _ => "converts",
    };
    format!("`#[{marker}]` {does} an argument of the call, and this parameter is none")
}

pub(crate) fn help_use_instead(owned: &str) -> String {
    format!("\n  = help: use {owned} instead of a reference")
}

pub(crate) fn borrowed_lifetime(lifetime: &str) -> String {
    format!(
        "a message owns its data, so `{lifetime}` cannot appear here: use `'static` or an owned \
         type"
    )
}

// What a reply may be.

pub(crate) const BORROWED_REPLY: &str =
    "a reply leaves the actor, so it cannot borrow from it: return an owned value";
pub(crate) const IMPL_TRAIT_REPLY: &str = "`impl Trait` cannot be a reply: name a concrete type";
pub(crate) const NEVER_REPLY: &str = "a message must return";
pub(crate) const REPLY_AND_RETURN: &str =
    "a method with a `Reply<_>` parameter answers through it and must return `()`";
pub(crate) const RESULT_WITHOUT_TYPE: &str =
    "`#[message(result)]` flattens a returned `Result`, but this method returns nothing";

// What a hook may be.

pub(crate) const HOOK_RECEIVER: &str = "a lifecycle hook takes `&mut self`";
pub(crate) const HOOK_GENERIC: &str = "a lifecycle hook cannot be generic";
pub(crate) const HOOK_QUALIFIER: &str =
    "a lifecycle hook is a plain `fn` or `async fn`, not `unsafe`, `const` or `extern`";
pub(crate) const HOOK_CONTEXT_TWICE: &str = "a lifecycle hook takes the actor context at most once";
pub(crate) const STOPPING_RETURNS: &str =
    "a `stopping` hook returns nothing: the actor stops whatever happens in it";

/// An `error` hook, and `a` every other one.
fn a_hook(event: &str) -> String {
    let article = if event == "error" { "an" } else { "a" };
    format!("{article} `{event}` hook")
}

pub(crate) fn hook_parameter(event: &str) -> String {
    let hook = a_hook(event);
    format!("{hook} takes no parameters besides `&mut Ctx<Self>`")
}

pub(crate) fn hook_news(event: &str, told: &str) -> String {
    let hook = a_hook(event);
    format!("{hook} takes one `{told}`, and `&mut Ctx<Self>` if it likes")
}

pub(crate) fn hook_returns(event: &str) -> String {
    let hook = a_hook(event);
    format!("{hook} returns nothing: to fail, call `ctx.fail(..)`")
}

pub(crate) fn duplicate_event(event: &str, first: &str) -> String {
    format!("`{event}` is already handled by `{first}`")
}

// What `#[greenroom::main]` and `#[greenroom::test]` go on, and take.

pub(crate) const SHARDS_TEXTS: CountTexts = CountTexts {
    zero: "a system has at least one shard",
    not_a_number: "`shards` takes a number of shards, of type `usize`",
};
pub(crate) const BACKEND_NOT_A_NAME: &str =
    "`backend` takes the name of one: `auto`, `epoll` or `io_uring`";
pub(crate) const GRACE_NOT_A_DURATION: &str =
    "`grace` takes a `Duration`, such as `Duration::from_secs(5)`";
pub(crate) const ENTRY_QUALIFIER: &str =
    "this function is a plain `async fn`, not `unsafe`, `const` or `extern`";
pub(crate) const ENTRY_GENERIC: &str = "this function cannot be generic: nobody chooses its \
     parameters";
pub(crate) const ENTRY_RECEIVER: &str = "this is a function of its own, not a method";
pub(crate) const ENTRY_PARAMETER: &str = "this function takes no parameters, or one: the \
     `greenroom::Handle` of its system";
pub(crate) const ENTRY_NOT_CALLED_MAIN: &str =
    "`#[greenroom::main]` goes on the function `main`, where the program starts";
pub(crate) const ENTRY_TEST_TWICE: &str = "`#[greenroom::test]` makes the function a test already: \
     remove this attribute";

pub(crate) fn entry_on_other_item(attribute: &str) -> String {
    format!("`#[greenroom::{attribute}]` goes on an `async fn`")
}

pub(crate) fn entry_not_async(attribute: &str) -> String {
    format!(
        "`#[greenroom::{attribute}]` goes on an `async fn`: its body runs on a shard of a system, \
         as a future"
    )
}

pub(crate) fn unknown_backend(found: &str, nearest: Option<&str>, known: &[&str]) -> String {
    let known = known.join(", ");
    match nearest {
        Some(nearest) => {
            format!("unknown backend `{found}`; did you mean `{nearest}`? (backends: {known})")
        }
        None => format!("unknown backend `{found}` (backends: {known})"),
    }
}
