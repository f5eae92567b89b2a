//! Messages that are handled side by side.
//!
//! Only an actor that has some pays for them: it overrides the method of `Actor` that would begin a
//! reading phase, and implements the trait which that phase works with.

use proc_macro2::TokenStream;
use quote::quote_spanned;

use super::{Names, dispatch, later};
use crate::model::{ActorDef, Message};
use crate::{attrs, hygiene};

fn members(actor: &ActorDef) -> impl Iterator<Item = &Message> {
    actor
        .messages
        .iter()
        .filter(|message| message.is_concurrent)
}

/// The method of `Actor` that begins a reading phase.
pub(super) fn overlap(actor: &ActorDef) -> Option<TokenStream> {
    members(actor).next()?;
    Some(quote_spanned! {hygiene::generated()=>
        fn overlap(
            mailbox: &__rt::Mailbox<Self>,
            msg: Self::LocalMsg,
            share: &mut __rt::Share,
        ) -> __rt::Result<
            impl __rt::Future<Output = __rt::ReadingPhase>,
            Self::LocalMsg,
        > {
            __rt::overlap(mailbox, msg, share)
        }
    })
}

/// The trait that the phase works with.
pub(super) fn implementation(actor: &ActorDef, names: &Names) -> Option<TokenStream> {
    members(actor).next()?;
    let ty = &actor.ty;
    let (parameters, _, bounds) = actor.generics.split_for_impl();
    let limit = actor.options.concurrent.as_ref().map(|limit| {
        quote_spanned! {hygiene::generated()=>
            const CONCURRENT: __rt::usize = #limit;
        }
    });
    let patterns = members(actor).map(|message| {
        let cfg = attrs::for_every_part(&message.attrs);
        let pattern = dispatch::pattern_of_any(message, names);
        quote_spanned!(hygiene::generated()=> #cfg #pattern => true,)
    });
    let arms = later::arms(&members(actor).collect::<Vec<_>>(), names)?;
    Some(quote_spanned! {hygiene::generated()=>
        #[automatically_derived]
        impl #parameters __rt::Concurrent for #ty #bounds {
            #limit
            fn is_concurrent(msg: &Self::LocalMsg) -> __rt::bool {
                match msg {
                    #(#patterns)*
                    _ => false,
                }
            }

            fn dispatch_concurrent(
                &self,
                msg: Self::LocalMsg,
                ctx: &mut __rt::Ctx<Self>,
            ) -> impl __rt::Future<Output = ()> {
                match msg { #arms }
            }
        }
    })
}
