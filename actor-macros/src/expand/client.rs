//! The calls of an actor: what its address derefs to.
//!
//! A call is lazy: it holds the arguments and knows how to build the message. The message is built
//! where its place in the queue is, so it is written once.

use proc_macro2::{Literal, TokenStream};
use quote::{format_ident, quote_spanned};
use syn::Ident;
use syn::ext::IdentExt;

use super::Names;
use crate::attrs;
use crate::hygiene::{self, Place};
use crate::model::{ActorDef, Answer, Message, RefusedMessage};

pub(super) fn expand(actor: &ActorDef, names: &Names) -> TokenStream {
    let client = &names.client;
    let handle = handle(client);
    let ty = &actor.ty;
    let parameters = actor.generics.params.iter();
    let bounds = &actor.generics.where_clause;
    let calls = actor.messages.iter().map(|message| call(message, names));
    let refused = actor.refused.iter().map(refused_call);
    quote_spanned! {hygiene::generated()=>
        #handle
        impl<#(#parameters,)* __P: __rt::Port<Actor = #ty>> #client<__P> #bounds {
            #(#calls)*
            #(#refused)*
        }
    }
}

/// The client type: a port and nothing else.
fn handle(client: &Ident) -> TokenStream {
    quote_spanned! {hygiene::generated()=>
        pub struct #client<__P>(__P);

        #[automatically_derived]
        impl<__P: __rt::Port> __rt::core::clone::Clone for #client<__P> {
            #[inline]
            fn clone(&self) -> Self {
                *self
            }
        }

        #[automatically_derived]
        impl<__P: __rt::Port> __rt::core::marker::Copy for #client<__P> {}

        #[automatically_derived]
        impl<__P: __rt::Port> __rt::FromPort<__P> for #client<__P> {
            #[inline]
            fn from_port(port: __P) -> Self {
                Self(port)
            }

            #[inline]
            fn port(&self) -> __P {
                self.0
            }
        }
    }
}

fn call(message: &Message, names: &Names) -> TokenStream {
    let Message { vis, name, .. } = message;
    let attrs = attrs::for_the_call(&message.attrs);
    let arguments: Vec<&Ident> = message
        .arguments
        .iter()
        .map(|argument| &argument.name)
        .collect();
    let types: Vec<_> = message
        .arguments
        .iter()
        .map(|argument| &argument.ty)
        .collect();
    let returned = returned(
        &message.answer,
        &quote_spanned!(hygiene::generated()=> (#(#types,)*)),
    );
    let same_shard = message
        .is_local
        .then(|| quote_spanned!(hygiene::generated()=> where __P: __rt::SameShard,));
    let method = Literal::string(&name.unraw().to_string());
    let place = message.answer.place;
    let build = build(message, names);
    let parts = quote_spanned! {hygiene::generated()=>
        self.0,
        &__rt::Method { name: #method },
        (#(#arguments,)*),
        |args, reply| #build,
    };
    let made = place.call(place.runtime_path(&["Call", "new"]), parts);
    quote_spanned! {hygiene::generated()=>
        #attrs
        #[inline]
        #vis fn #name(&self, #(#arguments: #types),*) -> #returned
        #same_shard
        {
            #made
        }
    }
}

/// The type of a call, at the place where the user wrote the type of the reply.
fn returned(answer: &Answer, arguments: &TokenStream) -> TokenStream {
    let ty = &answer.ty;
    let blamed = hygiene::blamed_on(answer.place.first);
    let mode = if answer.is_flat {
        quote_spanned!(blamed=> __rt::Flat<#ty>)
    } else {
        quote_spanned!(blamed=> __rt::Plain<#ty>)
    };
    quote_spanned!(blamed=> __rt::Call<__P, #mode, #arguments>)
}

/// The message made of `args` and `reply`.
///
/// Each argument and the reply of a shared message go through a constructor that asks for the proof
/// that they may cross shards. The compiler reports a missing proof at the constructor's argument,
/// hence the fields of tuples: they are blamed on all of the user's type.
fn build(message: &Message, names: &Names) -> TokenStream {
    let name = &message.name;
    let arguments = message.arguments.iter().enumerate();
    if message.is_local {
        let local_message = &names.local_message;
        let fields = arguments.map(|(position, argument)| argument.place.field("args", position));
        return quote_spanned! {hygiene::generated()=>
            #local_message::#name(#(#fields,)* reply)
        };
    }
    let shared = &names.message;
    let arguments = arguments.map(|(position, argument)| {
        proof(
            "new",
            argument.place.field("args", position),
            argument.place,
        )
    });
    let place = message.answer.place;
    let reply = proof("reply", place.field("reply", 0), place);
    quote_spanned! {hygiene::generated()=> {
        let reply = (reply,);
        __rt::core::convert::From::from(#shared::#name(#(#arguments,)* #reply))
    }}
}

fn proof(constructor: &str, value: TokenStream, place: Place) -> TokenStream {
    place.call(place.runtime_path(&["Cross", constructor]), value)
}

/// The call of a message that broke a rule.
///
/// It exists so that the rest of the program is still typed: one mistake gives one text, not one
/// more at every place that calls the message. It takes anything, because what is wrong with the
/// message may be the type of a parameter.
fn refused_call(message: &RefusedMessage) -> TokenStream {
    let RefusedMessage { vis, name, .. } = message;
    let attrs = attrs::for_the_call(&message.attrs);
    let types: Vec<Ident> = (0..message.arguments)
        .map(|position| format_ident!("__A{position}", span = hygiene::generated()))
        .collect();
    let returned = returned(&message.answer, &quote_spanned!(hygiene::generated()=> ()));
    quote_spanned! {hygiene::generated()=>
        #attrs
        #vis fn #name<#(#types),*>(&self, #(_: #types),*) -> #returned {
            loop {}
        }
    }
}
