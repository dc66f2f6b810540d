import CLinux

/// The command line of this process.
///
/// Swift's own `CommandLine` looks for it next to the environment's first place, and finds nothing when a preloaded
/// library has changed the environment before `main`: a daemon would then run with its defaults.
package enum ProgramArguments {
    /// The words after the program's name.
    package static var words: [String] {
        (0..<clinux_argument_count()).dropFirst().compactMap { clinux_argument($0).map(String.init(cString:)) }
    }
}
