//! Sets of values that the command line names.

/// Gives each value of an enum its name on the command line, and a line about it.
#[macro_export]
macro_rules! names {
    ($type:ident { $($value:ident = $name:literal, $about:literal;)* }) => {
        impl $type {
            /// All of them.
            pub const ALL: &'static [$type] = &[$($type::$value),*];

            /// As the command line writes it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $($type::$value => $name,)* }
            }

            /// What it is, in a line.
            #[must_use]
            pub const fn about(self) -> &'static str {
                match self { $($type::$value => $about,)* }
            }
        }
    };
}
