package mongoserver

import "changerelay/services/sandbox/internal/access"

// newCommands makes the table of all commands, by the names that clients may
// use, and with what a client must be granted to run them.
func newCommands() map[string]*command {
	commands := map[string]*command{
		"abortTransaction":   {run: abortTransaction, needs: anyUser(), admin: true, inTransaction: true},
		"aggregate":          {run: aggregate, needs: byArguments(aggregatePrivileges), inTransaction: true},
		"buildInfo":          {run: buildInfo, needs: anybody()},
		"collMod":            {run: collMod, needs: onCollection(access.CollMod)},
		"collStats":          {run: collStats, needs: onCollection(access.CollStats)},
		"commitTransaction":  {run: commitTransaction, needs: anyUser(), admin: true, inTransaction: true},
		"configureFailPoint": {run: configureFailPoint, needs: anyUser(), admin: true},
		"connectionStatus":   {run: connectionStatus, needs: anybody()},
		"count":              {run: count, needs: onCollection(access.Find)},
		"create":             {run: create, needs: byArguments(createPrivileges), inTransaction: true},
		"createIndexes":      {run: createIndexes, needs: onCollection(access.CreateIndex), inTransaction: true},
		"createRole":         {run: createRole, needs: byArguments(rolePrivileges)},
		"createUser":         {run: createUser, needs: byArguments(userPrivileges)},
		"dbStats":            {run: dbStats, needs: onDatabase(access.DBStats)},
		"delete":             {run: deleteDocuments, needs: onCollection(access.Remove), write: true, inTransaction: true},
		"distinct":           {run: distinct, needs: onCollection(access.Find), inTransaction: true},
		"drop":               {run: drop, needs: onCollection(access.DropCollection)},
		"dropDatabase":       {run: dropDatabase, needs: onDatabase(access.DropDatabase)},
		"dropIndexes":        {run: dropIndexes, needs: onCollection(access.DropIndex)},
		"dropRole":           {run: dropRole, needs: onDatabase(access.DropRole)},
		"dropUser":           {run: dropUser, needs: onDatabase(access.DropUser)},
		"endSessions":        {run: endSessions, needs: anyUser()},
		"find":               {run: find, needs: onCollection(access.Find), inTransaction: true},
		"findAndModify":      {run: findAndModify, needs: byArguments(findAndModifyPrivileges), write: true, inTransaction: true},
		"getCmdLineOpts":     {run: getCmdLineOpts, needs: onCluster(access.GetCmdLineOpts), admin: true},
		"getLog":             {run: getLog, needs: onCluster(access.GetLog), admin: true},
		"getMore":            {run: getMore, needs: anyUser(), inTransaction: true},
		"getnonce":           {run: getNonce, needs: anybody()},
		"getParameter":       {run: getParameter, needs: onCluster(access.GetParameter), admin: true},
		"hello":              {run: hello, needs: anybody()},
		"hostInfo":           {run: hostInfo, needs: onCluster(access.HostInfo)},
		"insert":             {run: insert, needs: onCollection(access.Insert), write: true, inTransaction: true},
		"isMaster":           {run: hello, needs: anybody()},
		"killAllSessions":    {run: killAllSessions, needs: onCluster(access.KillAnySession)},
		"killCursors":        {run: killCursors, needs: anyUser(), inTransaction: true},
		"killSessions":       {run: endSessions, needs: anyUser()},
		"listCollections":    {run: listCollections, needs: byArguments(listCollectionsPrivileges)},
		"listDatabases":      {run: listDatabases, needs: anyUser(), admin: true},
		"listIndexes":        {run: listIndexes, needs: onCollection(access.ListIndexes)},
		"logout":             {run: logout, needs: anybody()},
		"ping":               {run: ping, needs: anybody()},
		"refreshSessions":    {run: refreshSessions, needs: anyUser()},
		"renameCollection":   {run: renameCollection, needs: byArguments(renamePrivileges), admin: true},
		"replSetGetConfig":   {run: replSetGetConfig, needs: onCluster(access.ReplSetGetConfig), admin: true},
		"replSetGetStatus":   {run: replSetGetStatus, needs: onCluster(access.ReplSetGetStatus), admin: true},
		"replSetFreeze":      {run: replSetFreeze, needs: onCluster(access.ReplSetStateChange), admin: true},
		"replSetStepDown":    {run: replSetStepDown, needs: onCluster(access.ReplSetStateChange), admin: true},
		"replSetStepUp":      {run: replSetStepUp, needs: onCluster(access.ReplSetStateChange), admin: true},
		"rolesInfo":          {run: rolesInfo, needs: onDatabase(access.ViewRole)},
		"saslContinue":       {run: saslContinue, needs: anybody()},
		"saslStart":          {run: saslStart, needs: anybody()},
		"serverStatus":       {run: serverStatus, needs: onCluster(access.ServerStatus)},
		"setParameter":       {run: setParameter, needs: onCluster(access.SetParameter), admin: true},
		"startSession":       {run: startSession, needs: anyUser()},
		"update":             {run: update, needs: byArguments(updatePrivileges), write: true, inTransaction: true},
		"updateRole":         {run: updateRole, needs: byArguments(rolePrivileges)},
		"updateUser":         {run: updateUser, needs: byArguments(userPrivileges)},
		"usersInfo":          {run: usersInfo, needs: onDatabase(access.ViewUser)},
		"whatsmyuri":         {run: whatsMyURI, needs: anybody()},
	}
	assignMembers(commands)
	for alias, name := range map[string]string{
		"buildinfo":     "buildInfo",
		"collstats":     "collStats",
		"dbstats":       "dbStats",
		"deleteIndexes": "dropIndexes",
		"findandmodify": "findAndModify",
		"ismaster":      "isMaster",
	} {
		commands[alias] = commands[name]
	}
	return commands
}
