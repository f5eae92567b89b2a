//! From the events of an actor's life to its hooks.

use proc_macro2::TokenStream;
use quote::quote_spanned;

use crate::model::{ActorDef, Hook};
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
                async fn started(
                    &mut self,
                    ctx: &mut __rt::Ctx<Self>,
                ) -> __rt::core::result::Result<(), __rt::StartFailure> {
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
    }
}

fn call(hook: &Hook) -> TokenStream {
    let handler = super::handler(&hook.name);
    let contexts = hook.contexts.iter().copied().map(super::context);
    let awaited = hook
        .is_async
        .then(|| quote_spanned!(hygiene::generated()=> .await));
    quote_spanned!(hygiene::generated()=> #handler(self, #(#contexts),*) #awaited)
}
