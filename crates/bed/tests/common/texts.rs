//! Scenarios as text: a phone, a server, and two paths between them.

/// Nodes and links: a path of 8 Mbit/s and 5 ms through `wifi`, one of 4 Mbit/s and 20 ms through `cell`.
pub const TWO_PATHS: &str = r#"
node = [{ names = ["phone", "wifi", "cell", "server"] }]
link = [
  { between = ["phone", "wifi"], rate = "8 Mbit/s", delay = "5 ms", queue = "50 packets" },
  { between = ["phone", "cell"], rate = "4 Mbit/s", delay = "20 ms", queue = "50 packets" },
  { between = ["wifi", "server"], rate = "1 Gbit/s", delay = "1 ms", queue = "unlimited" },
  { between = ["cell", "server"], rate = "1 Gbit/s", delay = "1 ms", queue = "unlimited" },
]
"#;

/// A connection of LIA from the phone to the server, with these subflows and what else its table says.
pub fn connection(name: &str, subflows: &str, more: &str) -> String {
    format!(
        r#"
        [[connection]]
        name = "{name}"
        from = "phone"
        to = "server"
        protocol = "mptcp"
        congestion = "lia"
        {more}
        subflow = [{subflows}]
        "#
    )
}

/// The subflows `wifi` and `cell`, each on its path.
pub const BOTH: &str = r#"{ name = "wifi", via = ["wifi"] }, { name = "cell", via = ["cell"] }"#;

/// A file of 2 MB over the sockets `on-wifi` and `on-cell`, each of which has a path of its own.
pub struct Transfer<'a> {
    /// How long the scenario lasts.
    pub duration: &'a str,
    /// What else the transfer's table says.
    pub keys: &'a str,
    /// Whether the other path is each socket's backup.
    pub backups: bool,
    /// What else the table of the transport says.
    pub transport: &'a str,
    /// Further tables.
    pub more: &'a str,
}

impl Transfer<'_> {
    /// The scenario.
    pub fn text(&self) -> String {
        let Self { duration, keys, backups, transport, more } = self;
        let socket = |own: &str, other: &str| {
            let mut subflows = format!(r#"{{ name = "own", via = ["{own}"] }}"#);
            if *backups {
                subflows += &format!(r#", {{ name = "other", via = ["{other}"], backup = true }}"#);
            }
            connection(&format!("on-{own}"), &subflows, "")
        };
        format!(
            r#"
            name = "transfer"
            duration = "{duration}"
            {TWO_PATHS}
            transfer = [{{ name = "file", over = ["on-wifi", "on-cell"], size = "2 MB", {keys} }}]
            [transport]
            profile = "linux"
            {transport}
            {}{}
            {more}"#,
            socket("wifi", "cell"),
            socket("cell", "wifi"),
        )
    }
}
