// Package results holds what a benchmark measured: every repetition of every
// figure, so that spread can be seen and nothing is averaged away. It is written
// as JSON for programs, as Markdown for the documentation, and as a page with
// plots that needs nothing from elsewhere.
package results
