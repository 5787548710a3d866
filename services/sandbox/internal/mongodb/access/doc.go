// Package access is MongoDB's role-based access control
// (https://www.mongodb.com/docs/manual/core/authorization/): actions on
// resources are privileges, roles hold privileges and other roles, users hold
// roles. It decides; who asks and where users and roles are kept is no concern
// of it.
package access
