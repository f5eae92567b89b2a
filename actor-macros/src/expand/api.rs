//! The calls of an actor as a trait that can be a trait object.
//!
//! The client implements it, and not the address: an address would offer the trait's methods before
//! the client's of the same names, and every call in a module that knows the trait would pay for a
//! type that is erased.

use proc_macro2::{Literal, TokenStream};
use quote::{ToTokens, quote_spanned};
use syn::ext::IdentExt;
use syn::{Ident, Visibility};

use super::Names;
use crate::model::{ActorDef, Answer, Argument, Message};
use crate::types::NameSelf;
use crate::{attrs, hygiene};

/// The declaration of the trait that `trait = ..` asks for.
pub(super) fn declared(actor: &ActorDef, krate: &TokenStream) -> Option<TokenStream> {
    let api = actor.options.api.as_ref()?;
    let (cfg, lints) = (&actor.cfg, &actor.lints);
    let name = &api.name;
    let vis = match &api.vis {
        Some(vis) => vis.to_token_stream(),
        None => widest(actor),
    };
    let (parameters, _, bounds) = actor.generics.split_for_impl();
    let methods = actor.calls_of_trait().map(|message| {
        let attrs = attrs::for_the_call(&message.attrs);
        let doc = undocumented(message);
        let signature = signature(message, &message.name, krate);
        quote_spanned!(hygiene::generated()=> #attrs #doc #signature;)
    });
    // No `#[diagnostic::on_unimplemented]`: a module without the implicit prelude does not know it.
    let doc = Literal::string(&format!(
        "The calls of `{}`, whoever answers them: `*addr` of an actor, or a stand-in.",
        actor.name
    ));
    Some(quote_spanned! {hygiene::generated()=>
        #cfg
        #lints
        #[doc = #doc]
        #[allow(
            deprecated,
            non_snake_case,
            private_bounds,
            private_interfaces,
            unreachable_pub,
            clippy::all,
            clippy::pedantic,
        )]
        #vis trait #name #parameters #bounds {
            #(#methods)*
        }
    })
}

/// What is said about a message of which nothing is: a private method needs no documentation, its call in a public trait
/// does, and a public one was warned of already.
fn undocumented(message: &Message) -> Option<TokenStream> {
    let is_doc = |attr: &syn::Attribute| attr.path().is_ident("doc");
    if message.attrs.iter().any(is_doc) {
        return None;
    }
    let doc = Literal::string(&format!("The message `{}`.", message.name.unraw()));
    Some(quote_spanned!(hygiene::generated()=> #[doc = #doc]))
}

/// The implementations of the declared trait and of the one that `implements = ..` names.
pub(super) fn implemented(actor: &ActorDef, names: &Names) -> TokenStream {
    let (_, arguments, _) = actor.generics.split_for_impl();
    let declared = actor.options.api.as_ref().map(|api| {
        let name = &api.name;
        let path = quote_spanned!(hygiene::generated()=> #name #arguments);
        implementation(
            actor,
            names,
            &path,
            &actor.calls_of_trait().collect::<Vec<_>>(),
        )
    });
    let foreign = actor.options.implements.as_ref().map(|implements| {
        let is_member = |message: &&Message| match &implements.methods {
            None => true,
            Some(listed) => listed.contains(&message.name),
        };
        let members: Vec<&Message> = actor.calls_of_trait().filter(is_member).collect();
        let path = NameSelf { actor: &actor.ty }.in_path(&implements.path);
        implementation(actor, names, &path.to_token_stream(), &members)
    });
    quote_spanned!(hygiene::generated()=> #declared #foreign)
}

fn implementation(
    actor: &ActorDef,
    names: &Names,
    path: &TokenStream,
    members: &[&Message],
) -> TokenStream {
    let client = &names.client;
    let ty = &actor.ty;
    let (parameters, _, bounds) = actor.generics.split_for_impl();
    let rt = quote_spanned!(hygiene::generated()=> __rt);
    let methods = members.iter().map(|message| {
        let cfg = attrs::for_every_part(&message.attrs);
        let name = super::silent(&message.name);
        let signature = signature(message, &name, &rt);
        let arguments = message.arguments.iter().map(|argument| &argument.name);
        quote_spanned! {hygiene::generated()=>
            #cfg
            #signature {
                __rt::From::from(#client::#name(self, #(#arguments),*))
            }
        }
    });
    quote_spanned! {hygiene::generated()=>
        #[automatically_derived]
        impl #parameters #path for #client<__rt::Remote<#ty>> #bounds {
            #(#methods)*
        }
    }
}

/// `greenroom` is where the names of the crate are, seen from where the signature stands.
fn signature(message: &Message, name: &Ident, greenroom: &TokenStream) -> TokenStream {
    let parameters = message
        .arguments
        .iter()
        .map(|Argument { name, ty, .. }| quote_spanned!(hygiene::generated()=> #name: #ty));
    let returned = returned(&message.answer, greenroom);
    quote_spanned!(hygiene::generated()=> fn #name(&self, #(#parameters),*) -> #returned)
}

/// The value and the error of a `Result` are named by the compiler, which sees through aliases.
fn returned(answer: &Answer, greenroom: &TokenStream) -> TokenStream {
    let ty = &answer.ty;
    let blamed = hygiene::blamed_on(answer.place.first);
    if answer.is_flat {
        quote_spanned!(blamed=> #greenroom::DynCallOf<#ty>)
    } else {
        quote_spanned!(blamed=> #greenroom::DynCall<#ty>)
    }
}

/// As visible as the most visible of its methods.
fn widest(actor: &ActorDef) -> TokenStream {
    let mut widest: Option<&Visibility> = None;
    for message in actor.calls_of_trait() {
        if breadth(&message.vis) > widest.map_or(0, breadth) {
            widest = Some(&message.vis);
        }
    }
    widest.map(ToTokens::to_token_stream).unwrap_or_default()
}

fn breadth(vis: &Visibility) -> usize {
    match vis {
        Visibility::Public(_) => 4,
        Visibility::Restricted(restricted) if restricted.path.is_ident("crate") => 3,
        Visibility::Restricted(restricted) if restricted.path.is_ident("super") => 2,
        Visibility::Restricted(_) => 1,
        Visibility::Inherited => 0,
    }
}
