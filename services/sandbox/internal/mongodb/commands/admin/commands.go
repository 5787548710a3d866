// Package admin has the commands about the server itself: what it is and does,
// who its clients are and may do, its elections, parameters and fail points.
package admin

import (
	"changerelay/services/sandbox/internal/mongodb/access"
	"changerelay/services/sandbox/internal/mongodb/accounts"
	"changerelay/services/sandbox/internal/mongodb/command"
)

// Commands are those about the server, its clients and their accounts, by name, with what a client must be granted to
// run them.
func Commands() map[string]*command.Command {
	return map[string]*command.Command{
		"buildInfo":                {Run: buildInfo, Needs: command.Anybody()},
		"configureFailPoint":       {Run: configureFailPoint, Needs: command.AnyUser(), Admin: true},
		"connectionStatus":         {Run: connectionStatus, Needs: command.Anybody()},
		"createRole":               {Run: createRole, Needs: command.ByArguments(rolePrivileges)},
		"createUser":               {Run: createUser, Needs: command.ByArguments(userPrivileges)},
		"currentOp":                {Run: currentOp, Needs: command.OnCluster("inprog"), Admin: true},
		"dbStats":                  {Run: dbStats, Needs: command.OnDatabase(access.DBStats)},
		"dropAllRolesFromDatabase": {Run: dropAllRoles, Needs: command.OnDatabase(access.DropRole)},
		"dropAllUsersFromDatabase": {Run: dropAllUsers, Needs: command.OnDatabase(access.DropUser)},
		"dropRole":                 {Run: dropRole, Needs: command.OnDatabase(access.DropRole)},
		"dropUser":                 {Run: dropUser, Needs: command.OnDatabase(access.DropUser)},
		"endSessions":              {Run: endSessions, Needs: command.AnyUser()},
		"fsync":                    {Run: fsync, Needs: command.OnCluster("fsync"), Admin: true},
		"fsyncUnlock":              {Run: fsyncUnlock, Needs: command.OnCluster("unlock"), Admin: true},
		"getCmdLineOpts":           {Run: getCmdLineOpts, Needs: command.OnCluster(access.GetCmdLineOpts), Admin: true},
		"getLastError":             {Run: getLastError, Needs: command.AnyUser()},
		"getLog":                   {Run: getLog, Needs: command.OnCluster(access.GetLog), Admin: true},
		"getnonce":                 {Run: getNonce, Needs: command.Anybody()},
		"getParameter":             {Run: getParameter, Needs: command.OnCluster(access.GetParameter), Admin: true},
		"grantPrivilegesToRole":    {Run: changePrivileges((*accounts.RoleDocument).Grant), Needs: command.ByArguments(changingPrivileges(access.GrantRole))},
		"grantRolesToRole":         {Run: grantRolesToRole, Needs: command.ByArguments(changingRoles(access.GrantRole))},
		"grantRolesToUser":         {Run: changeUserRoles(accounts.GrantRoles), Needs: command.ByArguments(changingRoles(access.GrantRole))},
		"hello":                    {Run: hello, Needs: command.Anybody()},
		"hostInfo":                 {Run: hostInfo, Needs: command.OnCluster(access.HostInfo)},
		"isMaster":                 {Run: hello, Needs: command.Anybody()},
		"killAllSessions":          {Run: killAllSessions, Needs: command.OnCluster(access.KillAnySession)},
		"killAllSessionsByPattern": {Run: killAllSessions, Needs: command.OnCluster(access.KillAnySession)},
		"killOp":                   {Run: killOp, Needs: command.OnCluster(access.KillOp), Admin: true},
		"killSessions":             {Run: killSessions, Needs: command.AnyUser()},
		"listCommands":             {Run: listCommands, Needs: command.AnyUser()},
		"logout":                   {Run: logout, Needs: command.Anybody()},
		"ping":                     {Run: ping, Needs: command.Anybody()},
		"profile":                  {Run: profile, Needs: command.OnDatabase("enableProfiler")},
		"refreshSessions":          {Run: refreshSessions, Needs: command.AnyUser()},
		"replSetGetConfig":         {Run: replSetGetConfig, Needs: command.OnCluster(access.ReplSetGetConfig), Admin: true},
		"replSetGetStatus":         {Run: replSetGetStatus, Needs: command.OnCluster(access.ReplSetGetStatus), Admin: true},
		"replSetFreeze":            {Run: replSetFreeze, Needs: command.OnCluster(access.ReplSetStateChange), Admin: true},
		"replSetStepDown":          {Run: replSetStepDown, Needs: command.OnCluster(access.ReplSetStateChange), Admin: true},
		"replSetStepUp":            {Run: replSetStepUp, Needs: command.OnCluster(access.ReplSetStateChange), Admin: true},
		"resetError":               {Run: resetError, Needs: command.AnyUser()},
		"revokePrivilegesFromRole": {Run: changePrivileges((*accounts.RoleDocument).Revoke), Needs: command.ByArguments(changingPrivileges(access.RevokeRole))},
		"revokeRolesFromRole":      {Run: revokeRolesFromRole, Needs: command.ByArguments(changingRoles(access.RevokeRole))},
		"revokeRolesFromUser":      {Run: changeUserRoles(accounts.RevokeRoles), Needs: command.ByArguments(changingRoles(access.RevokeRole))},
		"rolesInfo":                {Run: rolesInfo, Needs: command.OnDatabase(access.ViewRole)},
		"saslContinue":             {Run: saslContinue, Needs: command.Anybody()},
		"saslStart":                {Run: saslStart, Needs: command.Anybody()},
		"serverStatus":             {Run: serverStatus, Needs: command.OnCluster(access.ServerStatus)},
		"setParameter":             {Run: setParameter, Needs: command.OnCluster(access.SetParameter), Admin: true},
		"startSession":             {Run: startSession, Needs: command.AnyUser()},
		"updateRole":               {Run: updateRole, Needs: command.ByArguments(rolePrivileges)},
		"updateUser":               {Run: updateUser, Needs: command.ByArguments(userPrivileges)},
		"usersInfo":                {Run: usersInfo, Needs: command.OnDatabase(access.ViewUser)},
		"whatsmyuri":               {Run: whatsMyURI, Needs: command.Anybody()},
	}
}
