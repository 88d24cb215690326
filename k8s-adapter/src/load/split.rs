//! Cuts a text into documents at its `---` lines, so that a broken one costs only itself.
//!
//! Text in, slices with their first line out; nothing is parsed here. Works for JSON too: a JSON
//! document cannot hold a line that starts with `---`.

/// A piece of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunk<'a> {
    /// The piece itself.
    pub(super) text: &'a str,
    /// Line of the whole text on which it starts, from 1.
    pub(super) line: u64,
}

impl Chunk<'_> {
    /// Whether it holds nothing but blank lines, comments and `%` directives.
    fn is_blank(&self) -> bool {
        self.text.lines().all(|line| {
            let line = line.trim_start();
            line.is_empty() || line.starts_with('#') || line.starts_with('%')
        })
    }
}

fn count_lines(text: &str) -> u64 {
    text.bytes().filter(|&byte| byte == b'\n').count() as u64
}

/// The documents of a text; blank ones are left out, as `kubectl` does.
pub(super) fn documents(text: &str) -> Vec<Chunk<'_>> {
    let mut chunks = Vec::new();
    let (mut start, mut line) = (0, 1);
    let mut close = |start: usize, end: usize, line: &mut u64| {
        let chunk = Chunk {
            text: &text[start..end],
            line: *line,
        };
        *line += count_lines(chunk.text);
        if !chunk.is_blank() {
            chunks.push(chunk);
        }
    };
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        if is_marker(rest, "---") {
            close(start, at, &mut line);
            // What follows on the marker's own line belongs to the next document.
            start = at + 3;
        } else if is_marker(rest, "...") {
            close(start, at, &mut line);
            start = at + rest.find('\n').unwrap_or(rest.len());
        }
        match rest.find('\n') {
            Some(newline) => at += newline + 1,
            None => break,
        }
    }
    close(start.min(text.len()), text.len(), &mut line);
    chunks
}

fn is_marker(rest: &str, marker: &str) -> bool {
    rest.strip_prefix(marker)
        .is_some_and(|after| after.is_empty() || after.starts_with(['\n', '\r', ' ', '\t']))
}

/// The items of a list as `kubectl get -o yaml` writes it: `items:` at the left margin, each item
/// starting with `- ` there too. `None` when the document looks different or uses anchors, which may
/// reach from item to item.
///
/// A list cut this way is read item by item: a broken item costs only itself, and 140,000 pods never
/// lie in memory as one tree.
pub(super) fn list_items<'a>(chunk: &Chunk<'a>) -> Option<Vec<Chunk<'a>>> {
    let text = chunk.text;
    let found = ["\nitems:\n- ", "\nitems:\r\n- "].map(|header| text.find(header));
    let items_line = found.into_iter().flatten().min()? + 1;
    let first = items_line + text[items_line..].find('\n')? + 1;
    let mut starts = vec![first];
    let (mut at, mut end) = (first, text.len());
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with("- ") && at > first {
            starts.push(at);
        } else if !rest.starts_with(['-', ' ', '\n', '\r', '#']) {
            end = at;
            break;
        }
        at += rest.find('\n').map_or(rest.len(), |newline| newline + 1);
    }
    let is_list = [&text[..items_line], &text[end..]]
        .iter()
        .flat_map(|part| part.lines())
        .any(|line| line.trim_end() == "kind: List");
    if !is_list || [": &", "- &"].iter().any(|anchor| text.contains(anchor)) {
        return None;
    }
    let mut line = chunk.line + count_lines(&text[..first]);
    let mut items = Vec::with_capacity(starts.len());
    for (index, &start) in starts.iter().enumerate() {
        let stop = starts.get(index + 1).copied().unwrap_or(end);
        let text = &text[start..stop];
        items.push(Chunk { text, line });
        line += count_lines(text);
    }
    Some(items)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<(u64, &str)> {
        let chunks = documents(text);
        chunks
            .iter()
            .map(|chunk| (chunk.line, chunk.text.trim()))
            .collect()
    }

    #[test]
    fn documents_keep_their_true_lines() {
        let text = "# head\n---\na: 1\nb: 2\n--- # comment\n\n---\r\nc: 3\r\n---\n";
        assert_eq!(texts(text), [(2, "a: 1\nb: 2"), (7, "c: 3")]);
        assert_eq!(
            texts("--- {a: 1}\n...\n---\nb: 2"),
            [(1, "{a: 1}"), (3, "b: 2")]
        );
        assert_eq!(texts(""), []);
        assert_eq!(texts("---"), []);
        assert_eq!(
            texts("%YAML 1.2\n---\na: ---\n----: 1\n"),
            [(2, "a: ---\n----: 1")]
        );
    }

    #[test]
    fn a_kubectl_list_is_cut_at_its_items() {
        let text =
            "apiVersion: v1\nitems:\n- a: 1\n  b:\n  - c\n- a: 2\nkind: List\nmetadata: {}\n";
        let chunk = documents(text)[0];
        let items = list_items(&chunk).expect("a kubectl list");
        let seen: Vec<_> = items.iter().map(|item| (item.line, item.text)).collect();
        assert_eq!(seen, [(3, "- a: 1\n  b:\n  - c\n"), (6, "- a: 2\n")]);
    }

    #[test]
    fn a_list_with_anchors_or_of_another_shape_is_left_whole() {
        for text in [
            "kind: List\nitems:\n- a: &x 1\n- a: *x\n",
            "kind: List\nitems:\n  - a: 1\n",
            "kind: ConfigMap\nitems:\n- a: 1\n",
        ] {
            assert_eq!(list_items(&documents(text)[0]), None, "{text}");
        }
    }
}
