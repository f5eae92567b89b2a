//! From a message to the reply in it.
//!
//! Asked for seldom: before an asynchronous handler begins, and when an asker has given up.

use proc_macro2::TokenStream;
use quote::quote_spanned;

use super::Names;
use crate::model::{ActorDef, Message};
use crate::{attrs, hygiene};

pub(super) fn expand(actor: &ActorDef, names: &Names) -> TokenStream {
    let arms = actor.messages.iter().map(|message| arm(message, names));
    quote_spanned! {hygiene::generated()=>
        fn reply_of(msg: &Self::LocalMsg) -> __rt::Carried<'_> {
            match msg {
                #(#arms)*
                _ => __rt::core::unreachable!(),
            }
        }
    }
}

fn arm(message: &Message, names: &Names) -> TokenStream {
    let cfg = attrs::for_every_part(&message.attrs);
    let Names {
        message: shared,
        local_message,
        ..
    } = names;
    let name = &message.name;
    let pattern = if message.is_local {
        quote_spanned!(hygiene::generated()=> #local_message::#name(.., reply))
    } else if names.has_local() {
        quote_spanned!(hygiene::generated()=> #local_message::__Shared(#shared::#name(.., reply)))
    } else {
        quote_spanned!(hygiene::generated()=> #shared::#name(.., reply))
    };
    let is_deferred = message.answer.is_deferred;
    quote_spanned! {hygiene::generated()=>
        #cfg #pattern => __rt::Carried { reply, is_deferred: #is_deferred },
    }
}
