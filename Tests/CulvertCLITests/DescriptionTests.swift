import Testing

@testable import CulvertCLI

@Suite struct DescriptionTests {
    @Test(arguments: Program.descriptions.map(\.name))
    func helpFitsEightyColumns(_ name: String) throws {
        let description = try Invocation.command(named: name).description
        let help = HelpText.command(description)
        for line in help { #expect(line.count <= 80, "\(line)") }
        for option in description.allOptions { #expect(help.contains { $0.contains("--\(option.name)") }) }
        #expect(help.first == "usage: \(description.usage)")
    }

    @Test func programHelpFitsEightyColumns() {
        let help = HelpText.program(Program.descriptions)
        for line in help { #expect(line.count <= 80, "\(line)") }
        for description in Program.descriptions { #expect(help.contains { $0.hasPrefix("  \(description.name) ") }) }
    }

    @Test func helpOfInvite() throws {
        let help = HelpText.command(InviteCommand.description).joined(separator: "\n")
        #expect(
            help == """
                usage: culvert invite [OPTIONS]

                Make an invite for one more client of the running host.

                Options:
                  --invite-lifetime TIME  How long an invite works, such as 90s, 10m, 2h or 30d
                                          (default: 90s)
                  --state-dir DIR         Directory of identity, servers and devices (default:
                                          ~/.local/state/culvert)
                  --qr WHEN               Draw the QR code: auto (on a terminal where all of it
                                          fits, about 125 columns by 85 lines), always or never
                                          (default: auto)
                  --json                  Print JSON
                  -h, --help              Show this help

                Examples:
                  # invite another machine without showing the link
                  culvert invite | ssh laptop culvert connect -
                """)
    }

    @Test func namesAreUnique() {
        let names = Program.descriptions.map(\.name)
        #expect(Set(names).count == names.count)
        for description in Program.descriptions {
            let options = description.allOptions.map(\.name)
            #expect(Set(options).count == options.count)
        }
    }

    @Test func everyOptionIsListed() {
        // An option that a command reads but does not list would be refused as unknown.
        let lists = Dictionary(uniqueKeysWithValues: Program.descriptions.map { ($0.name, $0.options.map(\.name)) })
        let relay = ["relay", "allow-insecure-relay", "relay-ca", "relay-token-file", "path"]
        #expect(
            lists["host"] == [
                "target", "listen", "name", "invite-lifetime", "max-streams",
            ] + relay + ["state-dir", "qr", "json"])
        #expect(
            lists["connect"] == [
                "port", "local-auth", "name", "device-name", "max-connections",
            ] + relay + ["state-dir", "json"])
        #expect(lists["servers"] == ["state-dir", "json"])
        #expect(lists["devices"] == ["all", "state-dir", "json"])
        #expect(lists["token"] == ["state-dir"])
    }

    @Test(arguments: Shell.allCases)
    func completionsMentionEveryOption(_ shell: Shell) {
        let lines = shell.completions(Program.descriptions)
        let prefix = shell == .fish ? "-l " : "--"
        for description in Program.descriptions {
            #expect(lines.contains { $0.contains(description.name) })
            for option in description.allOptions {
                #expect(lines.contains { $0.contains("\(prefix)\(option.name)") }, "\(description.name) \(option.name)")
            }
        }
    }

    @Test(arguments: Shell.allCases)
    func completionsOfferCommandsAndNames(_ shell: Shell) {
        let script = shell.completions(Program.descriptions).joined(separator: "\n")
        #expect(script.contains(#"servers --json"#) && script.contains(#"devices --json"#))
        // In fish the lists stand between quotes of their own.
        let uses = shell == .fish ? ("servers --json", "devices --json") : ("_culvert_servers", "_culvert_devices")
        for (name, use) in [
            ("connect", uses.0), ("forget", uses.0), ("token", uses.0), ("revoke", uses.1), ("rename", uses.1),
        ] {
            let section = CompletionScript(shell, script).section(of: name)
            #expect(section.contains(use), "\(shell) \(name)")
        }
        let all = Program.descriptions.map(\.name).joined(separator: " ")
        #expect(CompletionScript(shell, script).section(of: "help").contains(shell == .bash ? "$commands" : all))
    }

    @Test(arguments: Shell.allCases)
    func completionsOfferFilesAndRepeatedOptions(_ shell: Shell) throws {
        let script = CompletionScript(shell, shell.completions(Program.descriptions).joined(separator: "\n"))
        for command in ["host", "connect"] {
            let lines = script.section(of: command).split(separator: "\n")
            func line(_ option: String) throws -> String {
                let name = shell == .fish ? "-l \(option) " : shell == .zsh ? "--\(option)=" : "--\(option))"
                return String(try #require(lines.first { $0.contains(name) }))
            }
            let files =
                switch shell {
                case .bash: "compgen -f"
                case .zsh: ":_files'"
                case .fish: " -r -F "
                }
            for option in ["relay-ca", "relay-token-file"] { #expect(try line(option).contains(files)) }
            #expect(try !line("relay").contains(files) && !line("state-dir").contains(files))
            guard shell == .zsh else { continue }
            // Without the star, zsh offers an option once.
            #expect(try line("relay").contains("'*--relay=") && !line("path").contains("*--"))
        }
    }

    @Test func manualPromisesNoMoreThanTheProgram() {
        let page = ManualPage.lines(Program.descriptions).joined(separator: "\n")
        #expect(!page.contains("any router"))
    }

    @Test func programHelpTellsTheExitCodes() {
        let help = HelpText.program(Program.descriptions)
        for code in ExitCode.allCases { #expect(help.contains { $0.hasPrefix("  \(code.rawValue) ") }) }
    }

    @Test func manualMentionsEverything() {
        let page = ManualPage.lines(Program.descriptions)
        let macros = [".TH", ".SH", ".SS", ".TP", ".PP", ".EX", ".EE", ".B", ".I"]
        for line in page {
            #expect(!line.hasPrefix("'"))
            if line.hasPrefix(".") { #expect(macros.contains(String(line.prefix { $0 != " " })), "\(line)") }
        }
        for description in Program.descriptions {
            #expect(page.contains { $0.hasPrefix(".SS culvert \(description.name)") })
            for option in description.allOptions {
                let escaped = "--\(option.name)".split(separator: "-", omittingEmptySubsequences: false)
                #expect(page.contains { $0.contains(escaped.joined(separator: "\\-")) })
            }
        }
        for code in ExitCode.allCases { #expect(page.contains(".B \(code.rawValue)")) }
    }
}

/// What a completion script has for one command.
private struct CompletionScript {
    private let shell: Shell
    private let lines: [Substring]

    init(_ shell: Shell, _ script: String) {
        self.shell = shell
        lines = script.split(separator: "\n")
    }

    func section(of command: String) -> String {
        if shell == .fish {
            return lines.filter { $0.contains("__fish_seen_subcommand_from \(command)'") }.joined(separator: "\n")
        }
        let start = lines.drop { $0 != "    \(command))" }
        return start.prefix { $0 != "        ;;" }.joined(separator: "\n")
    }
}
