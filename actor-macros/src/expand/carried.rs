//! From a message to its method's name and to the reply in it.
//!
//! Asked for seldom: before an asynchronous handler begins, when an asker has given up, and when something went wrong.

use proc_macro2::TokenStream;
use quote::quote_spanned;
use syn::Ident;

use super::Names;
use super::dispatch::name_of;
use crate::model::{ActorDef, Message};
use crate::{attrs, hygiene};

pub(super) fn expand(actor: &ActorDef, names: &Names) -> TokenStream {
    let Names {
        message: shared,
        local_message,
        ..
    } = names;
    let (local, crossing): (Vec<&Message>, Vec<&Message>) =
        actor.messages.iter().partition(|message| message.is_local);
    let crossing = crossing.into_iter().map(|message| arm(message, shared));
    let of_any = if names.has_local() {
        let local = local.into_iter().map(|message| arm(message, local_message));
        quote_spanned! {hygiene::generated()=>
            match msg {
                #local_message::__Shared(msg) => <Self as __rt::Actor>::shared_carried(msg),
                #(#local)*
                _ => __rt::core::unreachable!(),
            }
        }
    } else {
        quote_spanned!(hygiene::generated()=> <Self as __rt::Actor>::shared_carried(msg))
    };
    quote_spanned! {hygiene::generated()=>
        fn carried(msg: &Self::LocalMsg) -> __rt::Carried<'_> {
            #of_any
        }

        fn shared_carried(msg: &Self::Msg) -> __rt::Carried<'_> {
            match msg {
                #(#crossing)*
                _ => __rt::core::unreachable!(),
            }
        }
    }
}

fn arm(message: &Message, owner: &Ident) -> TokenStream {
    let cfg = attrs::for_every_part(&message.attrs);
    let name = &message.name;
    let text = name_of(message);
    let is_deferred = message.answer.is_deferred;
    quote_spanned! {hygiene::generated()=>
        #cfg #owner::#name(.., reply) => __rt::Carried(reply, &#text, #is_deferred),
    }
}
