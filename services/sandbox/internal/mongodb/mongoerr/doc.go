// Package mongoerr holds the one error type that the MongoDB side of the
// sandbox answers with: a code, its name and a text, as a server puts them
// into a reply with ok: 0 or into a write error.
//
// Codes and names are those of MongoDB's error_codes.yml. A code that has no
// name there is called "Location" and its number, as the server does.
package mongoerr
