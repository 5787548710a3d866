// Package sas checks shared access signatures as the service does: a token
// names a key, a resource and an expiry, and is signed with the key's secret. A
// key has rights: to listen, to send, to manage.
//
// Tokens of Entra ID (JWT) cannot be checked without the directory that
// issued them. They are taken as good, with all rights.
package sas
