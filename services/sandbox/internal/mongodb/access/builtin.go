package access

// BuiltIn gives a role that every database has, or the admin database
// (https://www.mongodb.com/docs/v4.4/reference/built-in-roles/).
func BuiltIn(name Name) (Role, bool) {
	if privileges := ofDatabase(name.Name, Database(name.DB)); privileges != nil {
		return Role{Privileges: privileges}, true
	}
	if name.DB != "admin" {
		return Role{}, false
	}
	everywhere := Resource{}
	switch name.Name {
	case "readAnyDatabase", "readWriteAnyDatabase", "dbAdminAnyDatabase", "userAdminAnyDatabase":
		privileges := ofDatabase(name.Name[:len(name.Name)-len("AnyDatabase")], everywhere)
		return Role{Privileges: append(privileges, Privilege{Cluster(), []Action{ListDatabases}})}, true
	case "clusterMonitor":
		return Role{Privileges: clusterMonitor()}, true
	case "clusterAdmin":
		return Role{Privileges: clusterAdmin()}, true
	case "root":
		return Role{Privileges: append(append(ofDatabase("dbOwner", everywhere), clusterAdmin()...),
			Privilege{Collection("admin", "system.users"), []Action{Find}},
			Privilege{Collection("admin", "system.roles"), []Action{Find}},
		)}, true
	}
	return Role{}, false
}

// ofDatabase gives the privileges of a role that each database has, nil for
// none.
func ofDatabase(name string, db Resource) []Privilege {
	switch name {
	case "read":
		return []Privilege{{db, reading()}}
	case "readWrite":
		return []Privilege{{db, append(reading(), writing()...)}}
	case "dbAdmin":
		return []Privilege{{db, administering()}}
	case "userAdmin":
		return []Privilege{{db, managingUsers()}}
	case "dbOwner":
		return []Privilege{{db, append(append(append(reading(), writing()...), administering()...), managingUsers()...)}}
	}
	return nil
}

func reading() []Action {
	return []Action{ChangeStream, CollStats, "dbHash", DBStats, Find, "killCursors", ListIndexes, ListCollections}
}

func writing() []Action {
	return []Action{
		"convertToCapped", CreateCollection, DropCollection, CreateIndex, DropIndex, Insert, Remove, RenameCollectionSameDB, Update,
	}
}

func administering() []Action {
	return []Action{
		bypassValidation, CollMod, CollStats, "compact", "convertToCapped", CreateCollection, CreateIndex, DBStats, DropCollection,
		DropDatabase, DropIndex, "enableProfiler", ListCollections, ListIndexes, "planCacheIndexFilter", "planCacheRead",
		"planCacheWrite", "reIndex", RenameCollectionSameDB, "storageDetails", "validate",
	}
}

func managingUsers() []Action {
	return []Action{
		ChangeCustomData, ChangePassword, CreateRole, CreateUser, DropRole, DropUser, GrantRole, RevokeRole,
		"setAuthenticationRestriction", ViewRole, ViewUser,
	}
}

func clusterMonitor() []Privilege {
	inside := []Action{
		CollStats, "dbHash", DBStats, Find, "getShardVersion", "indexStats", "killCursors", ListCollections, ListIndexes, "planCacheRead",
	}
	return []Privilege{
		{Cluster(), []Action{
			"checkFreeMonitoringStatus", "connPoolStats", GetCmdLineOpts, "getDefaultRWConcern", GetLog, GetParameter, "getShardMap",
			HostInfo, "inprog", ListDatabases, ListSessions, "listShards", "netstat", ReplSetGetConfig, ReplSetGetStatus, ServerStatus,
			"setFreeMonitoring", "shardingState", "top",
		}},
		{Resource{}, []Action{CollStats, DBStats, "getDatabaseVersion", "getShardVersion", "indexStats", "useUUID"}},
		{Database("config"), inside},
		{Database("local"), inside},
		{Collection("local", "system.replset"), []Action{Find}},
	}
}

func clusterAdmin() []Privilege {
	return append(clusterMonitor(),
		Privilege{Cluster(), []Action{
			"appendOplogNote", "cpuProfiler", "dropConnections", "flushRouterConfig", "fsync", "invalidateUserCache", KillAnyCursor,
			KillAnySession, KillOp, "logRotate", ReplSetConfigure, "replSetResizeOplog", ReplSetStateChange, "resync", "setDefaultRWConcern",
			"setFeatureCompatibilityVersion", SetParameter, "shutdown", "touch", "trafficRecord", "unlock",
		}},
		Privilege{Resource{}, []Action{DropDatabase, "killCursors"}},
	)
}
