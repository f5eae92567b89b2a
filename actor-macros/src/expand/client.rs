//! The calls of an actor: what its address derefs to.
//!
//! A call is lazy: it holds the arguments and knows how to build the message. The message is built
//! where its place in the queue is, so it is written once.

use proc_macro2::{Literal, TokenStream};
use quote::{ToTokens, format_ident, quote_spanned};
use syn::Ident;
use syn::ext::IdentExt;

use super::{Names, enums, size};
use crate::attrs;
use crate::hygiene::{self, Place};
use crate::model::{ActorDef, Answer, Argument, Message, RefusedMessage};

pub(super) fn expand(actor: &ActorDef, names: &Names) -> TokenStream {
    let client = &names.client;
    let handle = handle(client);
    let ty = &actor.ty;
    let parameters = actor.generics.params.iter();
    let bounds = &actor.generics.where_clause;
    let calls = actor
        .messages
        .iter()
        .map(|message| call(message, actor, names));
    let refused = actor
        .refused
        .iter()
        .filter_map(|message| refused_call(message, actor, names));
    let methods = actor
        .messages
        .iter()
        .map(|message| method(message, actor, names));
    quote_spanned! {hygiene::generated()=>
        #handle
        impl<#(#parameters,)* __P: __rt::Way<Actor = #ty>> #client<__P> #bounds {
            #(#calls)*
            #(#refused)*
        }
        #(#methods)*
    }
}

/// The client type: a port and nothing else.
fn handle(client: &Ident) -> TokenStream {
    quote_spanned! {hygiene::generated()=>
        pub struct #client<__P>(__P);

        #[automatically_derived]
        impl<__P: __rt::Way> __rt::Clone for #client<__P> {
            #[inline]
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<__P: __rt::Way> __rt::Copy for #client<__P> {}

        #[automatically_derived]
        impl<__P: __rt::Way> __rt::FromPort<__P> for #client<__P> {
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

fn call(message: &Message, actor: &ActorDef, names: &Names) -> TokenStream {
    let Message { vis, name, .. } = message;
    let attrs = attrs::for_the_call(&message.attrs);
    let parameters = Parameters::of(message, actor, names);
    let Parameters {
        generics,
        bounds,
        list,
        values,
    } = &parameters;
    let blamed = hygiene::blamed_on(message.answer.place.first);
    let mode = mode(&message.answer);
    let tuple = argument_types(message);
    let marker = marker(message);
    let (_, arguments, _) = actor.generics.split_for_impl();
    let types_of_call = quote_spanned!(blamed=> #mode, #tuple, #marker #arguments);
    let returned = if message.is_local {
        quote_spanned!(blamed=> __Call<__L, #types_of_call>)
    } else {
        quote_spanned!(blamed=> __Call<__P, #types_of_call>)
    };
    let place = message.answer.place;
    let way = if message.is_local {
        quote_spanned!(hygiene::generated()=> __rt::SameShard::itself(self.0))
    } else {
        quote_spanned!(hygiene::generated()=> self.0)
    };
    let parts = quote_spanned!(hygiene::generated()=> #way, (#(#values,)*));
    let mut function = place.runtime_path(&["Way", "call"]);
    function.extend(quote_spanned!(blamed=> ::<_, _, #marker #arguments>));
    let made = place.call(function, parts);
    quote_spanned! {hygiene::generated()=>
        #attrs
        #vis fn #name #generics(&self, #(#list),*) -> #returned
        where #(#bounds,)*
        {
            #made
        }
    }
}

/// What a call takes, what it makes of it, and what it asks of the way.
struct Parameters {
    generics: Option<TokenStream>,
    bounds: Vec<TokenStream>,
    list: Vec<TokenStream>,
    values: Vec<TokenStream>,
}

impl Parameters {
    fn of(message: &Message, actor: &ActorDef, names: &Names) -> Self {
        let mut generics = Vec::new();
        let mut bounds = Vec::new();
        let mut list = Vec::new();
        let mut values = Vec::new();
        for (
            position,
            Argument {
                name, ty, is_into, ..
            },
        ) in message.arguments.iter().enumerate()
        {
            if *is_into {
                let generic = format_ident!("__I{position}", span = hygiene::generated());
                bounds.push(quote_spanned! {hygiene::generated()=>
                    #generic: __rt::Into<#ty>
                });
                list.push(quote_spanned!(hygiene::generated()=> #name: #generic));
                values.push(quote_spanned! {hygiene::generated()=>
                    __rt::Into::into(#name)
                });
                generics.push(generic);
            } else {
                list.push(quote_spanned!(hygiene::generated()=> #name: #ty));
                values.push(name.to_token_stream());
            }
        }
        let way = if message.is_local {
            generics.push(Ident::new("__L", hygiene::generated()));
            bounds.push(quote_spanned!(hygiene::generated()=> __P: __rt::SameShard<__L>));
            let (ty, local_message) = (&actor.ty, &names.local_message);
            let (_, arguments, _) = actor.generics.split_for_impl();
            bounds.push(quote_spanned! {hygiene::generated()=>
                __L: __rt::Way<Actor = #ty, Env = #local_message #arguments>
            });
            quote_spanned!(hygiene::generated()=> __L)
        } else {
            if actor.has_keys && message.key().is_none() {
                bounds.push(quote_spanned!(hygiene::generated()=> __P: __rt::Aimed));
            }
            quote_spanned!(hygiene::generated()=> __P)
        };
        let tuple = argument_types(message);
        bounds.push(quote_spanned!(hygiene::generated()=> #tuple: __Suits<#way>));
        Self {
            generics: (!generics.is_empty())
                .then(|| quote_spanned!(hygiene::generated()=> <#(#generics),*>)),
            bounds,
            list,
            values,
        }
    }
}

/// How the handler answers, at the place where the user wrote the type of the reply.
fn mode(answer: &Answer) -> TokenStream {
    let ty = &answer.ty;
    let blamed = hygiene::blamed_on(answer.place.first);
    if answer.is_flat {
        quote_spanned!(blamed=> __Flat<#ty>)
    } else {
        quote_spanned!(blamed=> __Plain<#ty>)
    }
}

fn argument_types(message: &Message) -> TokenStream {
    let types = message.arguments.iter().map(|argument| &argument.ty);
    quote_spanned!(hygiene::generated()=> (#(#types,)*))
}

/// The type that stands for a message in the types of its calls.
fn marker(message: &Message) -> Ident {
    let name = message.name.unraw();
    format_ident!("__m_{name}", span = hygiene::generated())
}

/// How a message is built: a marker type, so that the compiler sees the code at each call.
fn method(message: &Message, actor: &ActorDef, names: &Names) -> TokenStream {
    let cfg = attrs::for_every_part(&message.attrs);
    let marker = marker(message);
    let name = Literal::string(&message.name.unraw().to_string());
    let is_later = message.is_async || message.batch.is_some();
    let answers_later = (is_later || message.answer.is_deferred)
        .then(|| quote_spanned!(hygiene::generated()=> const ANSWERS_AT_ONCE: __rt::bool = false;));
    let (parameters, arguments_of_actor, bounds) = actor.generics.split_for_impl();
    let owner = if message.is_local {
        &names.local_message
    } else {
        &names.message
    };
    let phantom = enums::phantom(actor);
    let mode = mode(&message.answer);
    let arguments = argument_types(message);
    let reply = &message.answer.ty;
    let build = build(message, names);
    let size = size::in_generic_code(message, actor);
    let key_hash = key_hash(message);
    let lane = message.is_urgent.then(|| {
        quote_spanned! {hygiene::generated()=>
            const LANE: __rt::Lane = __rt::Lane::Urgent;
        }
    });
    quote_spanned! {hygiene::generated()=>
        #cfg
        pub enum #marker #parameters #bounds { #phantom }
        #cfg
        impl #parameters __Message<#mode, #arguments> for #marker #arguments_of_actor #bounds {
            type Of = #owner #arguments_of_actor;
            const NAME: __Name = #name;
            #answers_later
            #lane
            #[inline]
            fn build(args: #arguments, reply: __Reply<#reply>) -> Self::Of {
                #size
                #build
            }
            #key_hash
        }
    }
}

/// The hash of the argument that decides on the instance; a type that has none is reported where it is written.
fn key_hash(message: &Message) -> Option<TokenStream> {
    let (position, key) = message.key()?;
    let place = key.place;
    let field = place.field("args", position);
    let argument = quote_spanned!(hygiene::blamed_on(place.first)=> &#field);
    let hash = place.call(place.runtime_path(&["key_hash"]), argument);
    let arguments = argument_types(message);
    Some(quote_spanned! {hygiene::generated()=>
        #[inline]
        fn key_hash(args: &#arguments) -> __rt::u64 {
            #hash
        }
    })
}

/// The message made of `args` and `reply`.
///
/// What is to be proved to cross shards goes through a constructor that asks for it. The compiler reports a missing proof at the constructor's argument,
/// hence the fields of tuples: they are blamed on all of the user's type.
fn build(message: &Message, names: &Names) -> TokenStream {
    let name = super::silent(&message.name);
    let fields = message.arguments.iter().enumerate();
    let fields = fields.map(
        |(
            position,
            Argument {
                place, is_proved, ..
            },
        )| {
            let field = place.field("args", position);
            if *is_proved {
                proof("new", field, *place)
            } else {
                field
            }
        },
    );
    let fields = if message.is_boxed {
        quote_spanned!(hygiene::generated()=> __rt::Boxed::new((#(#fields,)*)),)
    } else {
        quote_spanned!(hygiene::generated()=> #(#fields,)*)
    };
    let owner = if message.is_local {
        &names.local_message
    } else {
        &names.message
    };
    if !message.answer.is_proved {
        return quote_spanned!(hygiene::generated()=> #owner::#name(#fields reply));
    }
    let place = message.answer.place;
    let (wrapped, reply) = place.field_of_tuple("reply");
    let reply = proof("reply", reply, place);
    quote_spanned! {hygiene::generated()=>
        #wrapped
        #owner::#name(#fields #reply)
    }
}

fn proof(constructor: &str, value: TokenStream, place: Place) -> TokenStream {
    place.call(place.runtime_path(&["Cross", constructor]), value)
}

/// The call of a message that broke a rule.
///
/// It exists so that the rest of the program is still typed: one mistake gives one text, not one
/// more at every place that calls the message. It takes anything, because what is wrong with the
/// message may be the type of a parameter. If it is the reply, the mistake is reported where the
/// type of the call stands: the compiler has no further questions to what such a call returns.
fn refused_call(message: &RefusedMessage, actor: &ActorDef, names: &Names) -> Option<TokenStream> {
    let RefusedMessage { vis, name, .. } = message;
    let attrs = attrs::for_the_call(&message.attrs);
    let types: Vec<Ident> = (0..message.arguments)
        .map(|position| format_ident!("__A{position}", span = hygiene::generated()))
        .collect();
    let returned = match &message.answer {
        Ok(answer) => {
            let mode = mode(answer);
            let blamed = hygiene::blamed_on(answer.place.first);
            let owner = &names.message;
            let (_, arguments, _) = actor.generics.split_for_impl();
            quote_spanned! {blamed=>
                __Call<__P, #mode, (), __rt::Unmade<#owner #arguments>>
            }
        }
        Err(mistake) => {
            let mistake = mistake.as_ref()?.to_compile_error();
            quote_spanned!(hygiene::generated()=> [(); #mistake])
        }
    };
    Some(quote_spanned! {hygiene::generated()=>
        #attrs
        #vis fn #name<#(#types),*>(&self, #(_: #types),*) -> #returned {
            loop {}
        }
    })
}
