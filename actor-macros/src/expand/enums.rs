//! The messages of an actor as enums.
//!
//! A variant is called exactly like its method and holds the arguments in order, then the reply if
//! it is not deferred to one of them. Messages that may cross shards and messages that may not are
//! two types; the second one wraps the first, so that the mailbox holds one type.

use proc_macro2::TokenStream;
use quote::quote_spanned;
use syn::Ident;

use super::Names;
use crate::model::{ActorDef, Message};
use crate::{attrs, hygiene};

pub(super) fn expand(actor: &ActorDef, names: &Names) -> TokenStream {
    let shared = one_enum(actor, &names.message, None, |message| !message.is_local);
    if !names.has_local() {
        return shared;
    }
    let wrapper = wrapper(actor, names);
    let local = one_enum(actor, &names.local_message, Some(&wrapper), |message| {
        message.is_local
    });
    let from = from_shared(actor, names);
    quote_spanned!(hygiene::generated()=> #shared #local #from)
}

fn one_enum(
    actor: &ActorDef,
    name: &Ident,
    wrapper: Option<&TokenStream>,
    is_member: impl Fn(&Message) -> bool,
) -> TokenStream {
    let (parameters, _, bounds) = actor.generics.split_for_impl();
    let members = actor.messages.iter().filter(|message| is_member(message));
    let variants = members.map(variant);
    let phantom = phantom(actor);
    quote_spanned! {hygiene::generated()=>
        pub enum #name #parameters #bounds {
            #wrapper
            #(#variants,)*
            #phantom
        }
    }
}

fn variant(message: &Message) -> TokenStream {
    let cfg = attrs::for_every_part(&message.attrs);
    let name = super::silent(&message.name);
    let fields = message.arguments.iter().map(|argument| {
        let ty = &argument.ty;
        if argument.is_proved {
            quote_spanned!(hygiene::generated()=> __rt::Cross<#ty>,)
        } else if message.is_local {
            quote_spanned!(hygiene::generated()=> __rt::Near<#ty>,)
        } else {
            quote_spanned!(hygiene::generated()=> #ty,)
        }
    });
    let fields: TokenStream = fields.collect();
    let answer = &message.answer.ty;
    let reply = if message.answer.is_proved {
        quote_spanned!(hygiene::generated()=> __rt::CrossReply<#answer>)
    } else {
        quote_spanned!(hygiene::generated()=> __Reply<#answer>)
    };
    if message.is_boxed {
        quote_spanned!(hygiene::generated()=> #cfg #name(__rt::Boxed<(#fields)>, #reply))
    } else {
        quote_spanned!(hygiene::generated()=> #cfg #name(#fields #reply))
    }
}

/// A variant that cannot exist and uses the type parameters that nothing else does.
pub(super) fn phantom(actor: &ActorDef) -> Option<TokenStream> {
    let mut parameters = actor
        .generics
        .type_params()
        .map(|param| &param.ident)
        .peekable();
    parameters.peek()?;
    Some(quote_spanned! {hygiene::generated()=>
        __Phantom(
            __rt::core::convert::Infallible,
            __rt::core::marker::PhantomData<(#(fn() -> *const #parameters,)*)>,
        ),
    })
}

fn wrapper(actor: &ActorDef, names: &Names) -> TokenStream {
    let shared = &names.message;
    let (_, arguments, _) = actor.generics.split_for_impl();
    quote_spanned!(hygiene::generated()=> __Shared(#shared #arguments),)
}

fn from_shared(actor: &ActorDef, names: &Names) -> TokenStream {
    let (shared, local) = (&names.message, &names.local_message);
    let (parameters, arguments, bounds) = actor.generics.split_for_impl();
    quote_spanned! {hygiene::generated()=>
        #[automatically_derived]
        impl #parameters __rt::From<#shared #arguments> for #local #arguments #bounds {
            #[inline]
            fn from(msg: #shared #arguments) -> Self {
                Self::__Shared(msg)
            }
        }
    }
}
