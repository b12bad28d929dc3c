//! Hosts and ports about which something is known.

/// Hosts that exist to collect what is sent to them.
#[rustfmt::skip]
pub(super) const COLLECTORS: &[&str] = &[
    "webhook.site", "requestbin.com", "requestbin.net", "pipedream.net", "beeceptor.com", "burpcollaborator.net", "oastify.com", "interact.sh",
    "oast.fun", "oast.live", "oast.me", "oast.online", "oast.pro", "oast.site", "requestcatcher.com", "requestrepo.com", "dnslog.cn", "dnslog.store",
    "ceye.io", "canarytokens.com", "hookbin.com", "transfer.sh", "file.io", "0x0.st", "termbin.com", "ix.io", "sprunge.us", "ptpb.pw",
    "bashupload.com", "temp.sh", "gofile.io", "anonfiles.com", "x0.at", "paste.rs", "catbox.moe", "tmpfiles.org", "webhookinbox.com", "mockbin.org",
    "postb.in", "ngrok.io", "ngrok.app", "ngrok.dev", "ngrok-free.app", "ngrok-free.dev", "trycloudflare.com", "loca.lt", "serveo.net", "localhost.run",
    "lhr.life", "pinggy.link", "bore.pub", "pastebin.com", "hastebin.com", "rentry.co", "dpaste.org", "dpaste.com", "webhook.cool", "typedwebhook.tools",
    "hookdeck.com", "svix.com", "smee.io", "hooks.slack.com", "hooks.zapier.com", "maker.ifttt.com", "api.telegram.org", "interactsh.com",
];

/// Collectors that are a part of a larger host: its name and how the path starts.
pub(super) const COLLECTOR_PATHS: &[(&str, &str)] = &[
    ("discord.com", "/api/webhooks"),
    ("discordapp.com", "/api/webhooks"),
    ("script.google.com", "/macros"),
    ("docs.google.com", "/forms"),
    ("outlook.office.com", "/webhook"),
];

/// Names of everybody's that resolve to this machine.
#[rustfmt::skip]
pub(super) const LOOPBACK_NAMES: &[&str] = &[
    "localhost", "ip6-localhost", "ip6-loopback", "localhost6", "localhost.localdomain", "localhost6.localdomain6", "host.docker.internal",
    "gateway.docker.internal", "host.containers.internal", "host.lima.internal", "lvh.me", "vcap.me", "lacolhost.com", "localho.st", "fuf.me", "local.gd",
    "lndo.site", "ddev.site", "smackaho.st",
];

/// Names that resolve to whatever address is written in them, or to a different one each time.
#[rustfmt::skip]
pub(super) const REBINDERS: &[&str] = &[
    "nip.io", "sslip.io", "xip.io", "localtest.me", "rebind.network", "local-ip.co", "local-ip.sh", "traefik.me", "backname.io", "1u.ms", "rbndr.us",
];

/// Ports on which no page is served: a request to them speaks to a service that reads lines.
#[rustfmt::skip]
pub(super) const SERVICE_PORTS: &[u16] = &[
    21, 22, 23, 25, 53, 110, 111, 135, 139, 143, 161, 389, 445, 465, 514, 587, 636, 873, 993, 995, 1433, 1521, 2049, 2181, 2375, 2376, 2379, 2380, 3306,
    3389, 4369, 5432, 5672, 5900, 5984, 6379, 6443, 9042, 9200, 9300, 10250, 11211, 27017,
];
