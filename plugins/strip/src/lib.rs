//! Digest strippers, in one component because most of a component is what all have: `regex-strip`, `html-strip`,
//! `marked-sections`. README.md says what each takes away.

pub mod regex_strip;

opilio_plugin::export!(digest_strippers: [regex_strip::RegexStrip]);

#[cfg(test)]
mod tests {
    #[test]
    fn cases() {
        opilio_plugin::testing::check_cases(&super::plugins(), "cases");
    }
}
