/// "Did you mean": the known word that a misspelt one most likely stands for.
enum Suggestion {
    /// The nearest of `words`; nil when none is near.
    static func closest(to word: String, among words: [String]) -> String? {
        let beginnings = words.filter { word.count >= 2 && $0.hasPrefix(word) }
        if beginnings.count == 1 { return beginnings[0] }
        let allowed = max(1, min(2, word.count / 3))
        let best = words.map { (distance(word, $0), $0) }.min { $0.0 < $1.0 }
        return best.flatMap { $0.0 <= allowed ? $0.1 : nil }
    }

    /// Insertions, deletions, replacements and swaps of neighbours that lead from one word to the other.
    static func distance(_ from: String, _ to: String) -> Int {
        let a = Array(from)
        let b = Array(to)
        var beforeLast = [Int](repeating: 0, count: b.count + 1)
        var last = Array(0...b.count)
        for i in 1..<(a.count + 1) {
            var row = [i] + [Int](repeating: 0, count: b.count)
            for j in 1..<(b.count + 1) {
                let replace = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)
                row[j] = min(replace, last[j] + 1, row[j - 1] + 1)
                if i > 1, j > 1, a[i - 1] == b[j - 2], a[i - 2] == b[j - 1] {
                    row[j] = min(row[j], beforeLast[j - 2] + 1)
                }
            }
            beforeLast = last
            last = row
        }
        return last[b.count]
    }
}
