//! From the events of an actor's life to its hooks.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote_spanned};
use syn::Ident;

use crate::model::{ActorDef, Hook, Slot};
use crate::roles::Event;
use crate::{attrs, hygiene};

pub(super) fn expand(actor: &ActorDef) -> TokenStream {
    actor.hooks.iter().map(hook).collect()
}

fn hook(hook: &Hook) -> TokenStream {
    let cfg = attrs::for_every_part(&hook.attrs);
    match hook.event {
        Event::Started => {
            // The returned type is converted through a trait, so that `()` and every `Result` do.
            let call = call(hook);
            let place = hook.returns;
            let convert = place.runtime_path(&["IntoStart", "into_start"]);
            let into_start = place.call(convert, place.field("returned", 0));
            quote_spanned! {hygiene::generated()=>
                #cfg
                const HEARS_START: __rt::core::primitive::bool = true;
                #cfg
                async fn started(
                    &mut self,
                    ctx: &mut __rt::Ctx<Self>,
                ) -> __rt::Result<(), __rt::StartFailure> {
                    let returned = (#call,);
                    #into_start
                }
            }
        }
        Event::Stopping => {
            let call = call(hook);
            quote_spanned! {hygiene::generated()=>
                #cfg
                async fn stopping(&mut self, ctx: &mut __rt::Ctx<Self>) {
                    #call
                }
            }
        }
        Event::Down => told(hook, "HEARS_DOWNS", "down", "Down"),
        Event::ChildExit => told(hook, "HEARS_CHILD_EXITS", "child_exit", "ChildExit"),
        Event::Error => told(hook, "HEARS_ERRORS", "told_error", "ToldError"),
    }
}

/// A hook that is told what happened.
fn told(hook: &Hook, constant: &str, function: &str, news: &str) -> TokenStream {
    let cfg = attrs::for_every_part(&hook.attrs);
    let span = hygiene::generated();
    let [constant, function, news] = [constant, function, news].map(|name| Ident::new(name, span));
    let call = call(hook);
    quote_spanned! {span=>
        #cfg
        const #constant: __rt::core::primitive::bool = true;
        #cfg
        async fn #function(&mut self, news: __rt::#news, ctx: &mut __rt::Ctx<Self>) {
            #call
        }
    }
}

fn call(hook: &Hook) -> TokenStream {
    let handler = super::handler(hook.keyword, &hook.name);
    let slots = hook.slots.iter().map(|slot| match slot {
        Slot::Context(place) => super::context(*place),
        // Another type than that of the news is reported where it is written.
        Slot::News(place) => {
            Ident::new("news", hygiene::blamed_on(place.first)).into_token_stream()
        }
        Slot::Argument | Slot::Reply(_) | Slot::Batch(_) => TokenStream::new(),
    });
    let awaited = hook
        .is_async
        .then(|| quote_spanned!(hygiene::generated()=> .await));
    quote_spanned!(hygiene::generated()=> #handler(self, #(#slots),*) #awaited)
}
