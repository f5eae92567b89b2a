//! From a message to its method's name and to the reply in it.

use proc_macro2::{Ident, TokenStream};
use quote::quote_spanned;

use super::Names;
use super::dispatch::name_of;
use crate::model::{ActorDef, Message};
use crate::{attrs, hygiene};

pub(super) fn expand(actor: &ActorDef, names: &Names) -> TokenStream {
    let (local, shared): (Vec<&Message>, Vec<&Message>) =
        actor.messages.iter().partition(|message| message.is_local);
    let of_shared = implementation(actor, &names.message, None, &shared);
    let of_local = names.has_local().then(|| {
        let wrapped = quote_spanned!(hygiene::generated()=> Self::__Shared(msg) => __rt::Carries::carried(msg),);
        implementation(actor, &names.local_message, Some(&wrapped), &local)
    });
    quote_spanned!(hygiene::generated()=> #of_shared #of_local)
}

fn implementation(
    actor: &ActorDef,
    owner: &Ident,
    wrapped: Option<&TokenStream>,
    messages: &[&Message],
) -> TokenStream {
    let (parameters, arguments, bounds) = actor.generics.split_for_impl();
    // A match is complete without it if it has an arm for sure, and no variant is there for the type parameters only.
    let is_complete = actor.generics.type_params().next().is_none()
        && (wrapped.is_some()
            || messages
                .iter()
                .any(|message| !attrs::has_cfg(&message.attrs)));
    let rest =
        (!is_complete).then(|| quote_spanned!(hygiene::generated()=> _ => __rt::unexpected(),));
    let arms = messages.iter().map(|message| arm(message));
    quote_spanned! {hygiene::generated()=>
        #[automatically_derived]
        impl #parameters __rt::Carries for #owner #arguments #bounds {
            fn carried(&self) -> __rt::Carried<'_> {
                match self {
                    #wrapped
                    #(#arms)*
                    #rest
                }
            }
        }
    }
}

fn arm(message: &Message) -> TokenStream {
    let cfg = attrs::for_every_part(&message.attrs);
    let name = super::silent(&message.name);
    let text = name_of(message);
    let made = if message.answer.is_deferred {
        quote_spanned!(hygiene::generated()=> __rt::carried_deferred)
    } else {
        quote_spanned!(hygiene::generated()=> __carried)
    };
    quote_spanned!(hygiene::generated()=> #cfg Self::#name(.., reply) => #made(reply, &#text),)
}
