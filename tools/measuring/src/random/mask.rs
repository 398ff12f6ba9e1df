//! Text by mask: `#` becomes a digit, `@` a letter a to z, anything else stays.

use super::Random;

/// The mask of `c`: 119 characters, 110 of them digits.
pub const C: &str = "###########-###########-###########-###########-###########-###########-###########-###########-\
                     ###########-###########";
/// The mask of `pad`: 59 characters, 55 of them digits.
pub const PAD: &str = "###########-###########-###########-###########-###########";

/// Appends a text of this mask, one draw per variable character, in order.
pub fn append(out: &mut String, mask: &str, random: &mut Random) {
    for character in mask.chars() {
        out.push(match character {
            '#' => char::from(b'0' + random.digit()),
            '@' => char::from(b'a' + u8::try_from(random.below(26)).unwrap_or(0)),
            literal => literal,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::Generator;
    use super::*;

    #[test]
    fn the_masks_have_the_lengths_of_the_original() {
        assert_eq!((C.len(), PAD.len()), (119, 59));
        assert_eq!(C.matches('#').count() + PAD.matches('#').count(), 165);
    }

    #[test]
    fn letters_digits_and_literals_come_out_where_the_mask_has_them() {
        let mut text = String::new();
        append(&mut text, "@@-##.x", &mut Random::new(Generator::Xoshiro, 1, 1));
        let shape: String = text
            .chars()
            .map(|c| {
                if c.is_ascii_digit() {
                    '#'
                } else if c.is_ascii_lowercase() && c != 'x' {
                    '@'
                } else {
                    c
                }
            })
            .collect();
        assert_eq!(shape, "@@-##.x");
    }
}
