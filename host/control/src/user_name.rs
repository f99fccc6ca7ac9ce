//! Names of the users of this machine.

/// File of users and their numbers (passwd(5)).
const USERS: &str = "/etc/passwd";

/// Returns the name of the user with this number. If the file of users does not have it, returns `uid-` and the number.
#[must_use]
pub fn user_name(uid: u32) -> String {
    let users = std::fs::read(USERS).unwrap_or_default();
    let name = name_in(&String::from_utf8_lossy(&users), uid);
    name.unwrap_or_else(|| format!("uid-{uid}"))
}

fn name_in(users: &str, uid: u32) -> Option<String> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, number) = (fields.next()?, fields.nth(1)?);
        let is_it = number.parse() == Ok(uid) && !name.is_empty();
        is_it.then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_the_name_of_its_line() {
        let users =
            "root:x:0:0::/root:/bin/sh\n# note\nada:x:1000:100:Ada:/home/ada:/bin/sh\n:x:7::\n";
        let name = |uid| name_in(users, uid);
        assert_eq!(name(0).as_deref(), Some("root"));
        assert_eq!(name(1000).as_deref(), Some("ada"));
        assert_eq!((name(100), name(7)), (None, None));
        assert_eq!(user_name(u32::MAX), "uid-4294967295");
    }
}
