//! Questions about the types in a signature.
//!
//! A macro sees spelling, not meaning. Every question asked here is one that spelling answers, and
//! what it cannot answer (is this `Send`? is this really the `Result`?) is left to the compiler at
//! the place of the user's type.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens, quote_spanned};
use syn::visit_mut::{self, VisitMut};
use syn::{
    AngleBracketedGenericArguments, BoundLifetimes, Expr, ExprPath, GenericArgument, GenericParam,
    Generics, Ident, Lifetime, Macro, ParenthesizedGenericArguments, Path, PathArguments,
    PathSegment, QSelf, TraitBound, Type, TypeFnPtr, TypePath, TypeReference, WherePredicate,
};

use crate::hygiene;

/// The type itself, without the groups and parentheses around it.
pub(crate) fn bare(ty: &Type) -> &Type {
    match ty {
        Type::Group(group) => bare(&group.elem),
        Type::Paren(paren) => bare(&paren.elem),
        ty => ty,
    }
}

/// The last segment of a plain path such as `io::Result<()>`.
pub(crate) fn last_segment(ty: &Type) -> Option<&PathSegment> {
    match bare(ty) {
        Type::Path(path) if path.qself.is_none() => path.path.segments.last(),
        _ => None,
    }
}

/// Whether the last segment of a path is `name`.
pub(crate) fn is_spelled(ty: &Type, name: &str) -> bool {
    last_segment(ty).is_some_and(|segment| segment.ident == name)
}

/// Whether this is `&mut Ctx<..>`.
pub(crate) fn is_context(ty: &Type) -> bool {
    match bare(ty) {
        Type::Reference(reference) => {
            reference.mutability.is_some() && is_spelled(&reference.elem, "Ctx")
        }
        _ => false,
    }
}

/// Whether this is `()`.
pub(crate) fn is_unit(ty: &Type) -> bool {
    matches!(bare(ty), Type::Tuple(tuple) if tuple.elems.is_empty())
}

/// Whether this is `Self`.
pub(crate) fn is_self(ty: &Type) -> bool {
    matches!(bare(ty), Type::Path(path) if path.qself.is_none() && path.path.is_ident("Self"))
}

/// Types that the language names.
const PRIMITIVES: &[&str] = &[
    "bool", "char", "f32", "f64", "i8", "i16", "i32", "i64", "i128", "isize", "str", "u8", "u16",
    "u32", "u64", "u128", "usize",
];

/// Whether this is one of the types that the language names.
pub(crate) fn is_primitive(ty: &Type) -> bool {
    match bare(ty) {
        Type::Path(path) if path.qself.is_none() => is_named(&path.path, PRIMITIVES),
        _ => false,
    }
}

fn is_named(path: &Path, names: &[&str]) -> bool {
    path.get_ident()
        .is_some_and(|ident| names.iter().any(|name| ident == name))
}

/// Whether values of this type have no size, as far as spelling tells, so that none can be passed.
pub(crate) fn is_unsized(ty: &Type) -> bool {
    match bare(ty) {
        Type::Slice(_) | Type::TraitObject(_) => true,
        Type::Path(path) => path.qself.is_none() && path.path.is_ident("str"),
        _ => false,
    }
}

/// Whether this is `Cow<str>` or a guard, with the lifetime left out that it has. A type of the user's may be called `Cow`
/// too, so what is behind it has to be what one borrows.
pub(crate) fn hides_a_lifetime(ty: &Type) -> bool {
    const GUARDS: &[&str] = &["MutexGuard", "RwLockReadGuard", "RwLockWriteGuard"];
    const BORROWED: &[&str] = &["Path", "OsStr", "CStr"];
    let Some(segment) = last_segment(ty) else {
        return false;
    };
    let PathArguments::AngleBracketed(arguments) = &segment.arguments else {
        return false;
    };
    let is_lifetime = |argument: &GenericArgument| matches!(argument, GenericArgument::Lifetime(_));
    let is_borrowed = |ty| is_unsized(ty) || BORROWED.iter().any(|name| is_spelled(ty, name));
    let is_cow = segment.ident == "Cow" && only_argument(segment).is_some_and(is_borrowed);
    (is_cow || GUARDS.iter().any(|name| segment.ident == name))
        && !arguments.args.iter().any(is_lifetime)
}

/// The only type argument of a path, `T` in `Reply<T>`.
pub(crate) fn only_argument(segment: &PathSegment) -> Option<&Type> {
    let PathArguments::AngleBracketed(AngleBracketedGenericArguments { args, .. }) =
        &segment.arguments
    else {
        return None;
    };
    match args.first() {
        Some(GenericArgument::Type(ty)) if args.len() == 1 => Some(ty),
        _ => None,
    }
}

/// Types that may cross shards if what is in them may.
const CROSSING_WITH: &[&str] = &["Box", "Option", "Result", "Vec"];

/// Whether the spelling says that values of a type may cross shards.
///
/// Most parameters and answers are of such types, and need no proof of their own. A module may give one of these names to
/// another type; that one is reported with the whole of the messages.
pub(crate) fn is_spelled_crossing(ty: &Type) -> bool {
    match bare(ty) {
        Type::Tuple(tuple) => tuple.elems.iter().all(is_spelled_crossing),
        Type::Array(array) => is_spelled_crossing(&array.elem),
        Type::Slice(slice) => is_spelled_crossing(&slice.elem),
        Type::Path(TypePath {
            qself: None, path, ..
        }) => is_path_crossing(path),
        _ => false,
    }
}

/// Whether the spelling says that values of a type are a few words at most.
pub(crate) fn is_spelled_small(ty: &Type) -> bool {
    matches!(bare(ty), Type::Reference(_)) || is_primitive(ty) || is_spelled(ty, "String")
}

fn is_path_crossing(path: &Path) -> bool {
    let Some(segment) = path.segments.last().filter(|_| path.segments.len() == 1) else {
        return false;
    };
    let PathArguments::AngleBracketed(arguments) = &segment.arguments else {
        return is_named(path, PRIMITIVES) || is_named(path, &["String"]);
    };
    let crosses = |argument: &GenericArgument| match argument {
        GenericArgument::Type(ty) => is_spelled_crossing(ty),
        _ => false,
    };
    path.leading_colon.is_none()
        && CROSSING_WITH.iter().any(|name| segment.ident == name)
        && arguments.args.iter().all(crosses)
}

/// Adds to the bounds that every type parameter is `'static`.
///
/// An actor is, and a user who forgets to say so would read nine errors about generated code.
pub(crate) fn outliving(mut generics: Generics) -> Generics {
    let parameters: Vec<Ident> = generics
        .type_params()
        .map(|param| param.ident.clone())
        .collect();
    for parameter in parameters {
        let bound = quote_spanned!(hygiene::generated()=> #parameter: 'static);
        if let Ok(bound) = syn::parse2::<WherePredicate>(bound) {
            generics.make_where_clause().predicates.push(bound);
        }
    }
    generics
}

/// Something in a type that cannot be part of a message.
pub(crate) enum Obstacle {
    /// A reference that is not `'static`.
    Reference(Box<TypeReference>),
    Lifetime(Lifetime),
    /// A type whose lifetime is left out.
    HiddenLifetime(Box<Type>),
    ImplTrait(TokenStream),
    /// The compiler says that no signature has it.
    Infer,
    Never(TokenStream),
    /// `Self` where it cannot be replaced, inside the tokens of a macro.
    SelfInMacro(TokenStream),
}

/// Finds everything in a type that cannot be part of a message.
pub(crate) fn obstacles(ty: &Type) -> Vec<Obstacle> {
    let mut search = Search::default();
    search.visit_type_mut(&mut ty.clone());
    search.found
}

/// `VisitMut` although nothing is changed: the visitor for shared references is a feature of `syn`
/// that costs every user build time.
#[derive(Default)]
struct Search {
    found: Vec<Obstacle>,
    /// Lifetimes declared by `for<'a>` around the current place.
    bound: Vec<Ident>,
    /// How many `fn(..)` and `Fn(..)` are around the current place: they bind what is left out.
    binders: usize,
}

impl Search {
    fn within_binder(&mut self, lifetimes: Option<&BoundLifetimes>, visit: impl FnOnce(&mut Self)) {
        let outer = self.bound.len();
        let declared = lifetimes.into_iter().flat_map(|bound| &bound.lifetimes);
        self.bound
            .extend(declared.filter_map(|parameter| match parameter {
                GenericParam::Lifetime(parameter) => Some(parameter.lifetime.ident.clone()),
                _ => None,
            }));
        visit(self);
        self.bound.truncate(outer);
    }
}

impl VisitMut for Search {
    fn visit_type_mut(&mut self, ty: &mut Type) {
        match ty {
            Type::ImplTrait(found) => self
                .found
                .push(Obstacle::ImplTrait(found.to_token_stream())),
            Type::Infer(_) => self.found.push(Obstacle::Infer),
            Type::Never(found) if self.binders == 0 => {
                self.found.push(Obstacle::Never(found.to_token_stream()));
            }
            ty => {
                if self.binders == 0 && hides_a_lifetime(ty) {
                    self.found
                        .push(Obstacle::HiddenLifetime(Box::new(ty.clone())));
                }
                visit_mut::visit_type_mut(self, ty);
            }
        }
    }

    fn visit_type_reference_mut(&mut self, reference: &mut TypeReference) {
        let borrows = reference.lifetime.is_none() && self.binders == 0;
        if borrows {
            let reference = Box::new(reference.clone());
            self.found.push(Obstacle::Reference(reference));
        } else {
            visit_mut::visit_type_reference_mut(self, reference);
        }
    }

    fn visit_lifetime_mut(&mut self, lifetime: &mut Lifetime) {
        let is_free = match lifetime.ident.to_string().as_str() {
            "static" => false,
            "_" => self.binders == 0,
            _ => !self.bound.contains(&lifetime.ident),
        };
        if is_free {
            self.found.push(Obstacle::Lifetime(lifetime.clone()));
        }
    }

    fn visit_type_fn_ptr_mut(&mut self, pointer: &mut TypeFnPtr) {
        self.binders += 1;
        let lifetimes = pointer.lifetimes.clone();
        self.within_binder(lifetimes.as_ref(), |search| {
            visit_mut::visit_type_fn_ptr_mut(search, pointer);
        });
        self.binders -= 1;
    }

    fn visit_parenthesized_generic_arguments_mut(
        &mut self,
        arguments: &mut ParenthesizedGenericArguments,
    ) {
        self.binders += 1;
        visit_mut::visit_parenthesized_generic_arguments_mut(self, arguments);
        self.binders -= 1;
    }

    fn visit_trait_bound_mut(&mut self, bound: &mut TraitBound) {
        let lifetimes = bound.lifetimes.clone();
        self.within_binder(lifetimes.as_ref(), |search| {
            visit_mut::visit_trait_bound_mut(search, bound);
        });
    }

    fn visit_macro_mut(&mut self, found: &mut Macro) {
        if mentions_self(found.tokens.clone()) {
            self.found
                .push(Obstacle::SelfInMacro(found.to_token_stream()));
        }
    }

    /// The length of an array is a constant expression of its own.
    fn visit_expr_mut(&mut self, _: &mut Expr) {}
}

fn mentions_self(tokens: TokenStream) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(ident) => ident == "Self",
        TokenTree::Group(group) => mentions_self(group.stream()),
        _ => false,
    })
}

/// Writes the actor's own type in place of `Self`.
///
/// A generated type is declared outside the user's block, where `Self` is somebody else. The new
/// tokens stand where `Self` stood and mean what they meant at the head of the block.
pub(crate) struct NameSelf<'a> {
    pub(crate) actor: &'a Type,
}

impl NameSelf<'_> {
    pub(crate) fn in_type(&mut self, ty: &Type) -> Type {
        let mut ty = ty.clone();
        self.visit_type_mut(&mut ty);
        ty
    }

    pub(crate) fn in_path(&mut self, path: &Path) -> Path {
        let mut path = path.clone();
        self.visit_path_mut(&mut path);
        path
    }

    pub(crate) fn in_generics(&mut self, generics: &Generics) -> Generics {
        let mut generics = generics.clone();
        self.visit_generics_mut(&mut generics);
        generics
    }

    fn actor_at(&self, place: Span) -> Type {
        Type::Verbatim(hygiene::moved_to(place, self.actor.to_token_stream()))
    }

    /// Turns `Self::ITEM` into `<Actor>::ITEM`.
    fn qualify(&self, qself: &mut Option<QSelf>, path: &mut Path) {
        if qself.is_some() || path.leading_colon.is_some() || path.segments.len() < 2 {
            return;
        }
        let Some(first) = path.segments.first() else {
            return;
        };
        if first.ident != "Self" {
            return;
        }
        let place = first.ident.span();
        *qself = Some(QSelf {
            lt_token: syn::Token![<](place),
            ty: Box::new(self.actor_at(place)),
            position: 0,
            as_token: None,
            gt_token: syn::Token![>](place),
        });
        path.leading_colon = Some(syn::Token![::](place));
        path.segments = path.segments.iter().skip(1).cloned().collect();
    }
}

impl VisitMut for NameSelf<'_> {
    fn visit_type_mut(&mut self, ty: &mut Type) {
        match ty {
            Type::Path(TypePath {
                qself: None, path, ..
            }) if path.is_ident("Self") => {
                if let Some(segment) = path.segments.first() {
                    *ty = self.actor_at(segment.ident.span());
                }
            }
            // Where the user allows needless parentheses the lint would find them in the copies.
            Type::Paren(paren)
                if !matches!(*paren.elem, Type::TraitObject(_) | Type::ImplTrait(_)) =>
            {
                *ty = (*paren.elem).clone();
                self.visit_type_mut(ty);
            }
            ty => visit_mut::visit_type_mut(self, ty),
        }
    }

    fn visit_type_path_mut(&mut self, ty: &mut TypePath) {
        self.qualify(&mut ty.qself, &mut ty.path);
        visit_mut::visit_type_path_mut(self, ty);
    }

    fn visit_expr_path_mut(&mut self, expr: &mut ExprPath) {
        self.qualify(&mut expr.qself, &mut expr.path);
        visit_mut::visit_expr_path_mut(self, expr);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quote::quote;

    fn words(ty: &Type) -> String {
        ty.to_token_stream().to_string().replace(' ', "")
    }

    fn ty(tokens: TokenStream) -> Type {
        syn::parse2(tokens).expect("a type")
    }

    #[test]
    fn self_is_named_wherever_it_can_be() {
        let actor = ty(quote!(Cache<K, N>));
        for (input, expected) in [
            (quote!(Self), quote!(Cache<K, N>)),
            (quote!(Vec<Self>), quote!(Vec<Cache<K, N>>)),
            (quote!([u8; Self::LEN]), quote!([u8; <Cache<K, N>>::LEN])),
            (quote!(<Self as Tr>::Out), quote!(<Cache<K, N> as Tr>::Out)),
            (quote!(fn(Self) -> u8), quote!(fn(Cache<K, N>) -> u8)),
        ] {
            let named = NameSelf { actor: &actor }.in_type(&ty(input));
            assert_eq!(words(&named), words(&ty(expected)));
        }
    }

    #[test]
    fn only_free_lifetimes_are_obstacles() {
        for (input, count) in [
            (quote!(&'static str), 0),
            (quote!(fn(&u8) -> &u8), 0),
            (quote!(Box<dyn Fn(&str) -> &str>), 0),
            (quote!(Box<dyn for<'a> Tr<'a>>), 0),
            (quote!(for<'a> fn(Cow<'a, str>)), 0),
            (quote!(fn() -> !), 0),
            (quote!(Cow<'_, str>), 1),
            (quote!(Cow<'a, str>), 1),
            (quote!(Option<&str>), 1),
            (quote!((impl Tr, _, &u8)), 3),
            (quote!(Box<dyn Tr + 'a>), 1),
        ] {
            assert_eq!(obstacles(&ty(input.clone())).len(), count, "{input}");
        }
    }
}
