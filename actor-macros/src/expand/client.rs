//! The calls of an actor: what its address derefs to.
//!
//! A call is lazy: it holds the arguments and knows how to build the message. The message is built
//! where its place in the queue is, so it is written once.

use proc_macro2::{Delimiter, Group, Literal, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote_spanned};
use syn::Ident;
use syn::ext::IdentExt;

use super::Names;
use crate::attrs;
use crate::hygiene::{self, Place};
use crate::model::{ActorDef, Answer, Argument, Message, RefusedMessage};

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
    let mode = mode(&message.answer);
    let same_shard = message
        .is_local
        .then(|| quote_spanned!(hygiene::generated()=> where __P: __rt::SameShard));
    let method = Literal::string(&name.unraw().to_string());
    let build = build(message, names);
    quote_spanned! {hygiene::generated()=>
        #attrs
        #[inline]
        #vis fn #name(&self, #(#arguments: #types),*) -> __rt::Call<__P, #mode, (#(#types,)*)>
        #same_shard
        {
            __rt::Call::new(
                self.0,
                &__rt::Method { name: #method },
                (#(#arguments,)*),
                |args, reply| #build,
            )
        }
    }
}

/// `Plain<T>` or `Flat<T>`, at the place where the user wrote the type.
fn mode(answer: &Answer) -> TokenStream {
    let ty = &answer.ty;
    if answer.is_flat {
        quote_spanned!(hygiene::blamed_on(answer.place.first)=> __rt::Flat<#ty>)
    } else {
        quote_spanned!(hygiene::blamed_on(answer.place.first)=> __rt::Plain<#ty>)
    }
}

/// The message made of `args` and `reply`.
fn build(message: &Message, names: &Names) -> TokenStream {
    let name = &message.name;
    let args = format_ident!("args", span = hygiene::generated());
    let fields = (0..message.arguments.len()).map(Literal::usize_unsuffixed);
    if message.is_local {
        let local_message = &names.local_message;
        return quote_spanned! {hygiene::generated()=>
            #local_message::#name(#(#args.#fields,)* reply)
        };
    }
    let shared = &names.message;
    let proofs = message
        .arguments
        .iter()
        .zip(fields)
        .map(|(argument, field)| proof(argument, &args, field));
    let reply = reply_proof(message);
    quote_spanned! {hygiene::generated()=>
        __rt::core::convert::From::from(#shared::#name(#(#proofs,)* #reply))
    }
}

/// The proof that an argument may cross shards: a constructor that asks for it.
///
/// The compiler reports a missing proof at the argument of the constructor, from its first to its
/// last token; with the parentheses placed as well, every version of it agrees on the whole type.
fn proof(argument: &Argument, args: &Ident, mut field: Literal) -> TokenStream {
    let Place { first, last } = argument.place;
    let mut args = args.clone();
    args.set_span(hygiene::blamed_on(first));
    field.set_span(hygiene::blamed_on(last));
    let mut dot = quote_spanned!(hygiene::blamed_on(first)=> #args .);
    dot.extend([TokenTree::Literal(field)]);
    let constructor = quote_spanned!(hygiene::blamed_on(first)=> __rt::Cross::new);
    applied(constructor, dot, argument.place)
}

/// The proof that a reply may cross shards.
fn reply_proof(message: &Message) -> TokenStream {
    let Place { first, last } = message.answer.place;
    // Located at the last token as well, or a type of several tokens is underlined in part.
    let reply = Ident::new("reply", hygiene::blamed_on(first));
    let constructor = quote_spanned!(hygiene::blamed_on(first)=> __rt::Cross::reply);
    applied(constructor, reply.to_token_stream(), Place { first, last })
}

fn applied(function: TokenStream, argument: TokenStream, place: Place) -> TokenStream {
    let mut parentheses = Group::new(Delimiter::Parenthesis, argument);
    parentheses.set_span(hygiene::blamed_on(place.last));
    let mut tokens = function;
    tokens.extend([TokenTree::Group(parentheses)]);
    tokens
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
    let mode = mode(&message.answer);
    quote_spanned! {hygiene::generated()=>
        #attrs
        #vis fn #name<#(#types),*>(&self, #(_: #types),*) -> __rt::Call<__P, #mode, ()> {
            loop {}
        }
    }
}
