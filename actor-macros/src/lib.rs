//! The `#[actor]` attribute of greenroom.
//!
//! This crate is used through `greenroom`, which exports everything in it.
//!
//! The attribute works in three steps, in reading order: `parse.rs` takes the user's block apart,
//! `model.rs` and `check.rs` make a typed model of it and report what is wrong, `expand/` turns the
//! model into code. The user's block is always in the output, first and unchanged but for our
//! markers; whatever could be understood of it is expanded, whatever else is wrong.

#![forbid(unsafe_code)]
#![warn(clippy::unwrap_used)]

mod args;
mod attrs;
mod check;
mod entry;
mod errors;
mod every;
mod expand;
mod hygiene;
mod messages;
mod model;
mod parse;
mod roles;
mod types;

#[cfg(test)]
mod tests;

#[cfg(doctest)]
#[doc = include_str!("../tests/edition_2021.md")]
mod edition_2021 {}

use proc_macro::TokenStream;
use proc_macro2::TokenStream as TokenStream2;
use syn::Visibility;
use syn::ext::IdentExt;

use crate::args::Options;
use crate::entry::Entry;
use crate::errors::Errors;
use crate::model::{ActorDef, Method};
use crate::parse::{RawImpl, RawItem};
use crate::roles::Role;
use crate::types::NameSelf;

#[doc = include_str!("../docs/actor.md")]
#[proc_macro_attribute]
pub fn actor(args: TokenStream, item: TokenStream) -> TokenStream {
    expand_actor(args.into(), item.into()).into()
}

#[doc = include_str!("../docs/message.md")]
#[proc_macro_attribute]
pub fn message(args: TokenStream, item: TokenStream) -> TokenStream {
    outside("message", args, item)
}

/// Keeps a visible method from being a message.
///
/// ```
/// use greenroom::prelude::*;
///
/// struct Names(Vec<String>);
///
/// #[actor]
/// impl Names {
///     /// Borrows from the actor, so only code that holds it may call this.
///     #[skip]
///     pub fn first(&self) -> Option<&str> {
///         self.0.first().map(String::as_str)
///     }
///
///     pub fn push(&mut self, name: String) {
///         self.0.push(name);
///     }
/// }
///
/// assert_eq!(Names(vec![String::from("ann")]).first(), Some("ann"));
/// ```
#[proc_macro_attribute]
pub fn skip(args: TokenStream, item: TokenStream) -> TokenStream {
    outside("skip", args, item)
}

/// Calls a method at a moment in the life of the actor.
///
/// * `#[on(started)]`: before the first message. It may return a `Result`; an error means that the
///   actor did not start.
/// * `#[on(stopping)]`: after the last message of an actor that stops. Not after a failure or a kill.
/// * `#[on(down)]`: an actor that this one watches has ended. It takes the `Down`.
/// * `#[on(child_exit)]`: a child has ended, or failed and is restarted. It takes the `ChildExit`.
/// * `#[on(error)]`: a handler of this actor returned an error to a message that was told. It takes the
///   `ToldError`. Without this hook such errors are counted.
///
/// A hook takes `&mut self` and, if it likes, `&mut Ctx<Self>`. It may be `async`, and it is no
/// message, whatever its visibility. The last three come before the messages that wait.
///
/// ```
/// use greenroom::prelude::*;
///
/// struct Journal {
///     lines: Vec<String>,
/// }
///
/// #[actor]
/// impl Journal {
///     #[on(started)]
///     async fn open(&mut self) -> Result<(), String> {
///         self.lines.push(String::from("opened"));
///         Ok(())
///     }
///
///     pub fn write(&mut self, line: String) {
///         self.lines.push(line);
///     }
///
///     #[on(stopping)]
///     fn close(&mut self, _: &mut Ctx<Self>) {
///         self.lines.push(String::from("closed"));
///     }
/// }
/// ```
#[proc_macro_attribute]
pub fn on(args: TokenStream, item: TokenStream) -> TokenStream {
    outside("on", args, item)
}

/// Calls a method again and again.
///
/// `#[every(PERIOD)]` begins with the actor, and again each time it is restarted; the first call is due after one period.
/// The period is a number with a unit (`us`, `ms`, `s`, `min`, `h`) or an expression of type `Duration`, at least a
/// millisecond. Each call is a message of the actor to itself and stands in the mailbox like any other; at most one of
/// them waits there. The method takes no parameters besides `&mut Ctx<Self>`, and is a message for others too if it is visible.
///
/// `#[every(PERIOD, missed = POLICY)]` says what becomes of calls whose time passes while one waits in the mailbox, or
/// while the shard is held up:
///
/// | policy | missed calls | later ones |
/// |---|---|---|
/// | `skip`, the default | are left out | keep to the grid |
/// | `burst` | are made up for, one after the other | keep to the grid |
/// | `delay` | are left out | come one period after the late one |
///
/// ```
/// use std::time::Duration;
///
/// use greenroom::prelude::*;
///
/// #[derive(Default)]
/// struct Cache {
///     age: u32,
/// }
///
/// #[actor]
/// impl Cache {
///     const SWEEP: Duration = Duration::from_secs(60);
///
///     pub fn age(&self) -> u32 {
///         self.age
///     }
///
///     #[every(5ms, missed = burst)]
///     fn grow_older(&mut self) {
///         self.age += 1;
///     }
///
///     #[every(Self::SWEEP)]
///     async fn sweep(&mut self, _: &mut Ctx<Self>) {
///         self.age = 0;
///     }
/// }
///
/// let system = System::start(1)?;
/// system.block_on(async {
///     let cache = system.spawn_on(0, Cache::default).await?;
///     while cache.age().await? == 0 {}
///     Ok::<(), greenroom::Error>(())
/// })?;
/// # Ok::<(), greenroom::Error>(())
/// ```
#[proc_macro_attribute]
pub fn every(args: TokenStream, item: TokenStream) -> TokenStream {
    outside("every", args, item)
}

/// Starts a system and runs an `async fn main` on its first shard.
///
/// When the function returns, the system is shut down: actors stop, and those that do not within
/// the grace are killed. What the function returns is what a plain `main` may return; an error is
/// printed, and the process ends with a code that says so. A panic ends the process as always.
///
/// The function takes no parameters, or the `Handle` of its system.
///
/// | option | meaning | default |
/// |---|---|---|
/// | `shards = EXPR` | how many shards | one for each CPU |
/// | `backend = NAME` | `auto`, `io_uring` or `epoll` | `auto`, see `Backend` |
/// | `grace = EXPR` | how long actors have to stop at the end, a `Duration` | 10 seconds |
/// | `crate = PATH` | where the `greenroom` crate is | `::greenroom` |
///
/// ```
/// use greenroom::prelude::*;
///
/// #[derive(Default)]
/// struct Counter {
///     n: u64,
/// }
///
/// #[actor]
/// impl Counter {
///     pub fn add(&mut self, by: u64) -> u64 {
///         self.n += by;
///         self.n
///     }
/// }
///
/// #[greenroom::main(shards = 2)]
/// async fn main() -> Result<(), greenroom::Error> {
///     let counter = greenroom::spawn(Counter::default());
///     assert_eq!(counter.add(5).await?, 5);
///     Ok(())
/// }
/// ```
#[proc_macro_attribute]
pub fn main(args: TokenStream, item: TokenStream) -> TokenStream {
    entry::expand(Entry::Main, args.into(), item.into()).into()
}

/// Makes an `async fn` a test that runs on a shard of a system of its own.
///
/// Nothing is shared between tests: each one starts a system and shuts it down. The function
/// returns nothing, or a `Result` whose error fails the test. A panic of the function is the
/// test's, so `#[should_panic]` works; a panic in an actor is the actor's, as always.
///
/// The function takes no parameters, or the `Handle` of its system.
///
/// | option | meaning | default |
/// |---|---|---|
/// | `shards = EXPR` | how many shards | 1 |
/// | `backend = NAME` | `auto`, `io_uring` or `epoll` | `auto`, see `Backend` |
/// | `grace = EXPR` | how long actors have to stop at the end, a `Duration` | 1 second |
/// | `crate = PATH` | where the `greenroom` crate is | `::greenroom` |
///
/// ```
/// # mod tests {
/// use greenroom::Handle;
/// use greenroom::prelude::*;
///
/// struct Echo;
///
/// #[actor]
/// impl Echo {
///     pub fn echo(&self, text: String) -> String {
///         text
///     }
/// }
///
/// #[greenroom::test(shards = 2)]
/// async fn what_is_said_comes_back(system: Handle) -> Result<(), greenroom::Error> {
///     let echo = system.spawn_on(1, || Echo).await?;
///     assert_eq!(echo.echo("hi".to_owned()).await?, "hi");
///     Ok(())
/// }
/// # }
/// ```
#[proc_macro_attribute]
pub fn test(args: TokenStream, item: TokenStream) -> TokenStream {
    entry::expand(Entry::Test, args.into(), item.into()).into()
}

/// `#[actor]` takes the markers of its own block away, so a marker that is expanded is misplaced.
fn outside(marker: &str, _: TokenStream, item: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let place = proc_macro2::Span::call_site();
    errors.at(place, messages::marker_outside(marker));
    let mut tokens = item;
    tokens.extend(TokenStream::from(errors.into_tokens()));
    tokens
}

/// The whole of `#[actor]`.
fn expand_actor(args: TokenStream2, item: TokenStream2) -> TokenStream2 {
    let mut errors = Errors::default();
    let options = args::parse(args, &mut errors);
    let (mut tokens, expansion) = match parse::parse(item.clone(), &mut errors) {
        None => (item, None),
        Some(mut raw) => {
            let actor = model(options, &mut raw, &mut errors);
            let mut block = expand::allowed_in_block(&raw);
            if check::is_refused_by_the_compiler(&raw.self_ty) {
                block.extend(expand::left_out());
            }
            block.extend(raw.to_user_tokens());
            (block, actor.map(|actor| expand::actor(&actor)))
        }
    };
    tokens.extend(errors.into_tokens());
    tokens.extend(expansion);
    tokens
}

/// Reads the block; `None` when its head is such that nothing can be generated for it.
fn model(options: Options, raw: &mut RawImpl, errors: &mut Errors) -> Option<ActorDef> {
    let roles: Vec<Role> = raw
        .items
        .iter_mut()
        .map(|item| {
            let role = roles::take(item, &options, errors);
            roles::take_of_parameters(item, is_message(item, &role), &options, errors);
            role
        })
        .collect();

    let before = errors.count();
    check::no_lifetime_parameters(&raw.generics, &raw.self_ty, errors);
    check::parameters_have_free_names(&raw.generics, errors);
    check::has_a_name(&raw.self_ty, errors);
    let is_sound = errors.count() == before;

    let ty = types::bare(&raw.self_ty).clone();
    let name = types::last_segment(&ty)?.ident.unraw();
    let mut actor = ActorDef {
        options,
        cfg: attrs::for_every_part(&raw.attrs),
        lints: attrs::lints(&raw.attrs),
        generics: types::outliving(NameSelf { actor: &ty }.in_generics(&raw.generics)),
        ty,
        name,
        messages: Vec::new(),
        hooks: Vec::new(),
        timers: Vec::new(),
        refused: Vec::new(),
        has_keys: false,
    };
    for (item, role) in raw.items.iter().zip(roles) {
        add_method(item, role, &mut actor, errors);
    }
    check::does_something(&actor, &raw.items, errors);
    check::concurrent_is_used(&actor, errors);
    check::trait_has_a_name_of_its_own(&mut actor, errors);
    check::trait_has_calls(&actor, errors);
    let before = errors.count();
    check::implements_what_it_has(&actor, errors);
    if errors.count() > before {
        // The compiler would miss the same messages once more.
        actor.options.implements = None;
    }
    if !is_sound {
        let untold = actor.refused.into_iter();
        let untold = untold.filter_map(|message| message.answer.err().flatten());
        untold.for_each(|error| errors.push(error));
        return None;
    }
    Some(actor)
}

/// Whether a method is a message, by its marker or, without one, by its visibility.
fn is_message(item: &RawItem, role: &Role) -> bool {
    match (role, &item.method) {
        (Role::Message(_) | Role::Every(_), _) => true,
        (Role::Unmarked, Some(raw)) => {
            !matches!(raw.vis, Visibility::Inherited) && raw.sig.receiver().is_some()
        }
        _ => false,
    }
}

/// Adds a method to the model in its role, if it obeys the rules of that role.
fn add_method(item: &RawItem, role: Role, actor: &mut ActorDef, errors: &mut Errors) {
    let Some(raw) = &item.method else {
        return;
    };
    match role {
        Role::Skip | Role::Mistaken => {}
        Role::Unmarked if !is_message(item, &role) => {}
        Role::Message(options) => {
            add_message(&Method::new(item, raw, Some(options)), actor, errors);
        }
        Role::Unmarked => add_message(&Method::new(item, raw, None), actor, errors),
        Role::Every(period) => {
            let method = Method::new(item, raw, Some(roles::MessageOptions::default()));
            let before = errors.count();
            check::timer(&method, errors);
            let is_sound = errors.count() == before;
            add_message(&method, actor, errors);
            if is_sound && errors.count() == before {
                actor.timers.push(method.to_timer(*period));
            }
        }
        Role::On(event) => {
            let method = Method::new(item, raw, None);
            let before = errors.count();
            check::hook(event, &method, &actor.hooks, errors);
            if errors.count() == before {
                actor.hooks.push(method.to_hook(event));
            }
        }
    }
}

fn add_message(method: &Method<'_>, actor: &mut ActorDef, errors: &mut Errors) {
    let before = errors.count();
    check::message_name(method, errors);
    let is_nameable = errors.count() == before;
    check::message_handler(method, errors);
    let (counted, reported) = (errors.count(), errors.reported());
    check::message_reply(method, errors);
    let has_reply = errors.count() == counted;
    let is_sound = errors.count() == before;
    actor.has_keys |= method.keys().next().is_some();
    actor.lints.extend(attrs::lints(&method.attrs));

    if is_defined_twice(method, actor) {
        return;
    }
    if is_sound {
        actor.messages.push(method.to_message(&actor.ty));
    } else if is_nameable {
        let answer = if has_reply {
            Ok(method.answer(&actor.ty))
        } else {
            Err(errors.take_since(reported))
        };
        actor.refused.push(method.to_refused(answer));
    }
}

/// The compiler reports two methods of one name; two variants of one name would repeat it.
///
/// Where `cfg` picks one of the methods, it picks the same variant.
fn is_defined_twice(method: &Method<'_>, actor: &ActorDef) -> bool {
    !attrs::has_cfg(&method.attrs)
        && actor
            .messages
            .iter()
            .any(|earlier| earlier.name == method.sig.ident && !attrs::has_cfg(&earlier.attrs))
}
