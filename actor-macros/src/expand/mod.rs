//! From the model to tokens.
//!
//! Everything generated for one actor stands in one unnamed constant after the user's block, so no
//! name is added to the user's module, and names only what `__rt` offers: logic belongs to the
//! runtime crate, not to each of its users. Inside the constant:
//!
//! * `enums.rs`: the messages of the actor, one variant each;
//! * `client.rs`: the calls, one method for each message;
//! * `size.rs`: the limit on the size of a message;
//! * `dispatch.rs`: from a variant to the handler;
//! * `later.rs`: from a variant to the future of an asynchronous handler;
//! * `carried.rs`: from a variant to its method's name and the reply in it;
//! * `batch.rs`: the same for messages that are handled several at once;
//! * `concurrent.rs`: the same for messages that are handled side by side;
//! * `hooks.rs`: from the events of an actor's life to its hooks;
//! * `timers.rs`: what an actor sends to itself again and again;
//! * `api.rs`: the calls as a trait, for who asks for one. The trait itself stands beside the constant.

mod api;
mod batch;
mod carried;
mod client;
mod concurrent;
mod dispatch;
mod enums;
mod hooks;
mod later;
mod size;
mod timers;

use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::{ToTokens, format_ident, quote_spanned};
use syn::{FnArg, ReceiverKind, Signature, Type};

use crate::args::{Overflow, Room};
use crate::hygiene::{self, Place};
use crate::model::ActorDef;
use crate::parse::RawImpl;
use crate::types;

/// The names of the generated types.
///
/// They start with two underscores and hold the name of the actor, because error texts of the
/// compiler show them.
struct Names {
    message: Ident,
    local_message: Ident,
    client: Ident,
}

impl Names {
    fn of(actor: &ActorDef) -> Self {
        let span = hygiene::generated();
        let name = &actor.name;
        let message = format_ident!("__{name}Msg", span = span);
        let has_local = actor.messages.iter().any(|message| message.is_local);
        Self {
            local_message: if has_local {
                format_ident!("__{name}LocalMsg", span = span)
            } else {
                message.clone()
            },
            message,
            client: format_ident!("__{name}Client", span = span),
        }
    }

    /// Whether some message is local, so that there are two message types.
    fn has_local(&self) -> bool {
        self.message != self.local_message
    }
}

/// Goes before the user's block: lints that ask for what the rules for messages forbid.
///
/// A message is owned, however big it is, and boxed if its mailbox is to stay small. It is called
/// through a reference to the actor and takes the context as `&mut`, whatever it does with them, is
/// no `const fn`, and may be asynchronous for its caller's sake; its future is never `Send`, and
/// need not be. What it returns is an answer, whether it is waited for or not. What no method of the
/// block can be reported for is left out.
pub(crate) fn allowed_in_block(raw: &RawImpl) -> TokenStream {
    let is_any = |test: &dyn Fn(&Signature) -> bool| {
        let mut methods = raw.items.iter().filter_map(|item| item.method.as_ref());
        methods.any(|method| test(&method.sig))
    };
    let takes = |sig: &Signature, test: fn(&Type) -> bool| {
        sig.inputs.iter().any(|input| match input {
            FnArg::Typed(typed) => test(&typed.ty),
            FnArg::Receiver(_) => false,
        })
    };
    let boxed = is_any(&|sig| takes(sig, |ty| types::is_spelled(ty, "Box")))
        .then(|| quote_spanned!(hygiene::generated()=> clippy::boxed_local,));
    let large = is_any(&|sig| takes(sig, |ty| !types::is_spelled_small(ty)))
        .then(|| quote_spanned!(hygiene::generated()=> clippy::large_types_passed_by_value,));
    let looks = is_any(&|sig| {
        let receiver = sig.receiver().map(|receiver| &receiver.kind);
        receiver.is_some_and(|kind| !matches!(kind, ReceiverKind::Reference(_, _, Some(_))))
    })
    .then(|| quote_spanned!(hygiene::generated()=> clippy::trivially_copy_pass_by_ref,));
    let waits = is_any(&|sig| sig.asyncness.is_some()).then(
        || quote_spanned!(hygiene::generated()=> clippy::future_not_send, clippy::unused_async,),
    );
    quote_spanned! {hygiene::generated()=>
        #[allow(
            #boxed
            #large
            #waits
            clippy::missing_const_for_fn,
            clippy::must_use_candidate,
            clippy::needless_pass_by_ref_mut,
            clippy::needless_pass_by_value,
            #looks
            clippy::unused_self,
        )]
    }
}

/// Goes before a block that cannot compile, and of which was said why.
pub(crate) fn left_out() -> TokenStream {
    quote_spanned!(hygiene::generated()=> #[cfg(any())])
}

/// Expands everything that follows the user's block.
pub(crate) fn actor(actor: &ActorDef) -> TokenStream {
    let names = Names::of(actor);
    let (cfg, lints) = (&actor.cfg, &actor.lints);
    let enums = enums::expand(actor, &names);
    let carried = carried::expand(actor, &names);
    let size = size::expand(actor);
    let enough = size::numbers_are_enough(actor);
    let client = client::expand(actor, &names);
    let implementation = implementation(actor, &names);
    let (krate, short) = (krate(actor), short(actor));
    let uses = actor.messages.iter().any(|message| message.answer.is_flat).then(|| {
        quote_spanned!(hygiene::generated()=> use __rt::{ShowDisplay as _, ShowNothing as _};)
    });
    let declared = api::declared(actor, &krate);
    let implemented = api::implemented(actor, &names);
    let twice_named = (actor.options.api.is_some() || actor.options.implements.is_some())
        .then(|| quote_spanned!(hygiene::generated()=> #[allow(clippy::same_name_method)]));
    // Generated code repeats the user's names at the user's places: a method is a call too, and an arm
    // calls it although it is deprecated. The list is short because a crate that forbids one of these
    // lints cannot use the attribute; what has no place of the user's is not linted anyway.
    quote_spanned! {hygiene::generated()=>
        #declared
        #cfg
        #lints
        #twice_named
        #[doc(hidden)]
        #[allow(
            dead_code,
            deprecated,
            non_snake_case,
            unreachable_code,
            clippy::all,
            clippy::pedantic,
            clippy::future_not_send,
        )]
        const _: () = {
            #short
            use #krate::__rt;
            #enums
            #carried
            #size
            #client
            #uses
            #implementation
            #implemented
            #enough
        };
    }
}

/// What every message names has a shorter name. Not all of them at once: a glob of a crate that is not found would leave
/// one more error at each name.
fn short(actor: &ActorDef) -> Option<TokenStream> {
    if actor.messages.is_empty() && actor.refused.is_empty() {
        return None;
    }
    Some(quote_spanned! {hygiene::generated()=>
        use __rt::short::{
            __Call, __Flat, __Message, __Name, __Plain, __Reply, __Suits, __answer, __carried,
        };
    })
}

/// The `greenroom` crate.
fn krate(actor: &ActorDef) -> TokenStream {
    match &actor.options.krate {
        Some(path) => path.to_token_stream(),
        None => quote_spanned!(hygiene::generated()=> ::greenroom),
    }
}

fn implementation(actor: &ActorDef, names: &Names) -> TokenStream {
    let Names {
        message,
        local_message,
        client,
    } = names;
    let ty = &actor.ty;
    let (parameters, arguments, bounds) = actor.generics.split_for_impl();
    let name = match &actor.options.name {
        Some(name) => Literal::string(name),
        None => Literal::string(&actor.name.to_string()),
    };
    let mailbox = actor.options.mailbox.as_ref().map(|room| {
        let room = match room {
            Room::Number(number) => number.to_token_stream(),
            Room::Unbounded => quote_spanned!(hygiene::generated()=> __rt::usize::MAX),
        };
        quote_spanned! {hygiene::generated()=>
            const MAILBOX: __rt::usize = #room;
        }
    });
    let overflow = actor.options.overflow.map(|policy| {
        let policy = match policy {
            Overflow::Wait => "Wait",
            Overflow::Reject => "Reject",
            Overflow::DropOldest => "DropOldest",
            Overflow::DropNewest => "DropNewest",
        };
        let policy = Ident::new(policy, hygiene::generated());
        quote_spanned! {hygiene::generated()=>
            const OVERFLOW: __rt::Overflow = __rt::Overflow::#policy;
        }
    });
    let dispatch = dispatch::expand(actor, names);
    let overlap = concurrent::overlap(actor);
    let concurrent = concurrent::implementation(actor, names);
    let hooks = hooks::expand(actor);
    let timers = timers::expand(actor);
    let has_keys = actor.has_keys.then(|| {
        quote_spanned! {hygiene::generated()=>
            #[automatically_derived]
            impl #parameters __rt::HasKeys for #ty #bounds {}
        }
    });
    quote_spanned! {hygiene::generated()=>
        #[automatically_derived]
        impl #parameters __rt::Actor for #ty #bounds {
            type Msg = #message #arguments;
            type LocalMsg = #local_message #arguments;
            type Client<__P: __rt::Way<Actor = Self>> = #client<__P>;
            const NAME: &'static __rt::str = #name;
            #mailbox
            #overflow
            #dispatch
            #overlap
            #hooks
            #timers
        }
        #concurrent
        #has_keys
    }
}

/// The context for a handler or hook; another actor's is reported at the type that asks for it.
fn context(place: Place) -> TokenStream {
    let mut function = place.runtime_path(&["ctx_is"]);
    function.extend(quote_spanned!(hygiene::blamed_on(place.last)=> ::<Self>));
    place.call(function, quote_spanned!(hygiene::generated()=> ctx))
}

/// The name of a method in another role: as a variant, or in the implementation of a trait.
///
/// Not at the user's place, where an editor would offer what it names beside the method and the call.
fn silent(name: &Ident) -> Ident {
    let mut name = name.clone();
    name.set_span(hygiene::generated());
    name
}

/// `Self::method`, blamed on `fn method`.
///
/// The type is not at the place of the name, where an editor would take it for a meaning of the name.
fn handler(keyword: Span, name: &Ident) -> TokenStream {
    let method = quote_spanned!(hygiene::blamed_on(name.span())=> ::#name);
    quote_spanned!(hygiene::blamed_on(keyword)=> Self #method)
}
