"""The questions of the matrix of rights: requests for each command and stage, on each kind of database and collection.

A question is a name, a database and a request. It is asked as each user, and only one bit of the answer counts: refused
for lack of rights (13), or not. So a request may fail for any other reason, and most are made so that they change little
where they are allowed.
"""

import datetime

import bson

OWN, OTHER = "rights_own", "rights_other"
DATABASES = [OWN, OTHER, "admin", "config", "local"]
# Collections of all kinds: database and name. Most do not exist.
COLLECTIONS = [
    (OWN, "c"), (OWN, "system.js"), (OWN, "system.profile"), (OWN, "system.views"), (OWN, "system.buckets.s"), (OWN, "system.users"),
    (OTHER, "c"), (OTHER, "system.js"), (OTHER, "system.profile"), (OTHER, "system.buckets.s"),
    ("admin", "c"), ("admin", "system.users"), ("admin", "system.roles"), ("admin", "system.version"), ("admin", "system.backup_users"),
    ("config", "c"), ("config", "settings"), ("config", "system.sessions"), ("config", "system.indexBuilds"), ("config", "transactions"),
    ("local", "c"), ("local", "startup_log"), ("local", "system.replset"), ("local", "replset.minvalid"), ("local", "replset.other"),
    ("local", "oplog.rs"),
]
# Requests that change data go to few collections, so that what others ask stays.
CHANGED = [
    (OWN, "c"), (OWN, "system.js"), (OWN, "system.profile"), (OWN, "system.buckets.s"), (OTHER, "c"), (OTHER, "system.js"), ("admin", "c"),
    ("config", "c"), ("local", "c"),
]


def pipeline(*stages):
    return lambda c: {"aggregate": c, "pipeline": list(stages), "cursor": {}}


NOTHING = {"$match": {"_id": "no such"}}
# Of a collection: requests that only read, or that fail before they change anything.
READS = {
    "find": lambda c: {"find": c, "limit": 1},
    "count": lambda c: {"count": c},
    "distinct": lambda c: {"distinct": c, "key": "a"},
    "aggregate": pipeline(),
    "aggregate explain": lambda c: {"aggregate": c, "pipeline": [], "explain": True},
    "$collStats": pipeline({"$collStats": {"count": {}}}),
    "$indexStats": pipeline({"$indexStats": {}}),
    "$planCacheStats": pipeline({"$planCacheStats": {}}),
    "getMore": lambda c: {"getMore": bson.Int64(77), "collection": c},
    "killCursors": lambda c: {"killCursors": c, "cursors": [bson.Int64(77)]},
    "explain find": lambda c: {"explain": {"find": c}},
    "explain count": lambda c: {"explain": {"count": c}},
    "explain distinct": lambda c: {"explain": {"distinct": c, "key": "a"}},
    "explain aggregate": lambda c: {"explain": {"aggregate": c, "pipeline": [], "cursor": {}}},
    "explain update": lambda c: {"explain": {"update": c, "updates": [{"q": {"_id": 7}, "u": {"$set": {"a": 1}}}]}},
    "explain upsert": lambda c: {"explain": {"update": c, "updates": [{"q": {"_id": 7}, "u": {"$set": {"a": 1}}, "upsert": True}]}},
    "explain delete": lambda c: {"explain": {"delete": c, "deletes": [{"q": {"_id": 7}, "limit": 1}]}},
    "explain findAndModify": lambda c: {"explain": {"findAndModify": c, "query": {"_id": 7}, "update": {"$set": {"a": 1}}}},
    "collStats": lambda c: {"collStats": c},
    "validate": lambda c: {"validate": c},
    "listIndexes": lambda c: {"listIndexes": c},
    "listCollections of one": lambda c: {"listCollections": 1, "filter": {"name": c}},
    "dataSize": None,
    "compact": lambda c: {"compact": c + ".none"},
    "reIndex": lambda c: {"reIndex": c + ".none"},
    "dropIndexes": lambda c: {"dropIndexes": c, "index": "no_such_1"},
    "deleteIndexes": lambda c: {"deleteIndexes": c, "index": "no_such_1"},
    "collMod": lambda c: {"collMod": c + ".none", "validationLevel": "off"},
    "$out": pipeline(NOTHING, {"$out": "rights_out"}),
    "$out elsewhere": pipeline(NOTHING, {"$out": {"db": OTHER, "coll": "rights_out"}}),
    "$out bypass": lambda c: {"aggregate": c, "pipeline": [NOTHING, {"$out": "rights_out"}], "cursor": {}, "bypassDocumentValidation": True},
    "$lookup": pipeline({"$lookup": {"from": "c", "localField": "a", "foreignField": "b", "as": "x"}}),
    "$unionWith": pipeline({"$unionWith": "c"}),
}
# Stages and options that came later: of a collection as READS.
READS.update({
    "$geoNear": pipeline({"$geoNear": {"near": [0, 0], "distanceField": "d"}}),
    "$text": pipeline({"$match": {"$text": {"$search": "x"}}}),
    "find $near": lambda c: {"find": c, "filter": {"p": {"$near": [0, 0]}}},
    "tailable find": lambda c: {"find": c, "tailable": True},
    "$collStats all": pipeline({"$collStats": {"latencyStats": {}, "storageStats": {}, "queryExecStats": {}}}),
    "$collStats explained": lambda c: {"explain": {"aggregate": c, "pipeline": [{"$collStats": {"count": {}}}], "cursor": {}}},
    "$collStats within $lookup": pipeline({"$lookup": {"from": "c", "pipeline": [{"$collStats": {"count": {}}}], "as": "x"}}),
    "$indexStats within $unionWith": pipeline({"$unionWith": {"coll": "c", "pipeline": [{"$indexStats": {}}]}}),
    "$planCacheStats within $unionWith": pipeline({"$unionWith": {"coll": "c", "pipeline": [{"$planCacheStats": {}}]}}),
    "$indexStats behind": pipeline({"$match": {}}, {"$indexStats": {}}),
    "$out explained": lambda c: {"explain": {"aggregate": c, "pipeline": [NOTHING, {"$out": "rights_out"}], "cursor": {}}},
    "$merge explained": lambda c: {"explain": {"aggregate": c, "pipeline": [NOTHING, {"$merge": "rights_merge"}], "cursor": {}}},
    "explain explain": lambda c: {"explain": {"explain": {"find": c}}},
    "explain insert": lambda c: {"explain": {"insert": c, "documents": [{}]}},
    "explain collStats": lambda c: {"explain": {"collStats": c}},
    "find of two databases": lambda c: {"explain": {"find": c, "$db": OTHER}},
})
# Stages that need the right to read and no more: of a collection as READS.
PLAIN_STAGES = {
    "$addFields": {"a": 1}, "$bucket": {"groupBy": "$_id", "boundaries": [0, 9], "default": 0}, "$bucketAuto": {"groupBy": "$_id", "buckets": 2},
    "$count": "n", "$densify": {"field": "t", "range": {"step": 1, "bounds": "full"}}, "$fill": {"output": {"a": {"value": 1}}},
    "$group": {"_id": 1}, "$limit": 1, "$match": {}, "$project": {"a": 1}, "$redact": "$$KEEP", "$replaceRoot": {"newRoot": "$$ROOT"},
    "$replaceWith": "$$ROOT", "$sample": {"size": 1}, "$set": {"a": 1}, "$setWindowFields": {"output": {"n": {"$sum": 1}}}, "$skip": 1,
    "$sort": {"a": 1}, "$sortByCount": "$a", "$unset": "a", "$unwind": "$a", "$facet": {"a": []},
}
READS.update({stage: pipeline({stage: value}) for stage, value in PLAIN_STAGES.items()})
# Of a collection: requests that may change it.
WRITES = {
    "insert": lambda c: {"insert": c, "documents": [{"_id": 1}]},
    "insert bypass": lambda c: {"insert": c, "documents": [{"_id": 1}], "bypassDocumentValidation": True},
    "update": lambda c: {"update": c, "updates": [{"q": {"_id": "none"}, "u": {"$set": {"a": 1}}}]},
    "update bypass": lambda c: {"update": c, "updates": [{"q": {"_id": "none"}, "u": {"$set": {"a": 1}}}], "bypassDocumentValidation": True},
    "upsert": lambda c: {"update": c, "updates": [{"q": {"_id": 2}, "u": {"$set": {"a": 1}}, "upsert": True}]},
    "upsert second": lambda c: {"update": c, "updates": [{"q": {"_id": 1}, "u": {"$set": {"a": 1}}},
                                                         {"q": {"_id": 2}, "u": {"$set": {"a": 1}}, "upsert": True}]},
    "delete": lambda c: {"delete": c, "deletes": [{"q": {"_id": "none"}, "limit": 1}]},
    "findAndModify update": lambda c: {"findAndModify": c, "query": {"_id": "none"}, "update": {"$set": {"a": 1}}},
    "findAndModify upsert": lambda c: {"findAndModify": c, "query": {"_id": 3}, "update": {"$set": {"a": 1}}, "upsert": True},
    "findAndModify remove": lambda c: {"findAndModify": c, "query": {"_id": "none"}, "remove": True},
    "findAndModify bypass": lambda c: {"findAndModify": c, "query": {"_id": "none"}, "update": {"$set": {"a": 1}},
                                       "bypassDocumentValidation": True},
    "create": lambda c: {"create": c},
    "create view": lambda c: {"create": c + ".view", "viewOn": c, "pipeline": []},
    "create view lookup": lambda c: {"create": c + ".look", "viewOn": c, "pipeline": [
        {"$lookup": {"from": "other", "localField": "a", "foreignField": "b", "as": "x"}}]},
    "create capped": lambda c: {"create": c + ".capped", "capped": True, "size": 4096},
    "collMod view": lambda c: {"collMod": c + ".view", "viewOn": c, "pipeline": []},
    "find view": lambda c: {"find": c + ".view"},
    "aggregate view": lambda c: {"aggregate": c + ".view", "pipeline": [], "cursor": {}},
    "count view": lambda c: {"count": c + ".view"},
    "createIndexes": lambda c: {"createIndexes": c, "indexes": [{"key": {"a": 1}, "name": "a_1"}]},
    "$merge": pipeline(NOTHING, {"$merge": {"into": "rights_merge"}}),
    "$merge fail": pipeline(NOTHING, {"$merge": {"into": "rights_merge", "whenNotMatched": "fail"}}),
    "$merge keep": pipeline(NOTHING, {"$merge": {"into": "rights_merge", "whenMatched": "keepExisting"}}),
    "$merge discard": pipeline(NOTHING, {"$merge": {"into": "rights_merge", "whenNotMatched": "discard"}}),
    "$merge bypass": lambda c: {"aggregate": c, "pipeline": [NOTHING, {"$merge": {"into": "rights_merge"}}], "cursor": {},
                                "bypassDocumentValidation": True},
    "planCacheClear": lambda c: {"planCacheClear": c},
    "planCacheListFilters": lambda c: {"planCacheListFilters": c},
    "planCacheClearFilters": lambda c: {"planCacheClearFilters": c},
    "planCacheSetFilter": lambda c: {"planCacheSetFilter": c + ".none", "query": {"a": 1}, "indexes": ["a_1"]},
    "convertToCapped": lambda c: {"convertToCapped": c + ".none", "size": 4096},
    "cloneCollectionAsCapped": lambda c: {"cloneCollectionAsCapped": c + ".none", "toCollection": c + ".none2", "size": 4096},
    "drop": lambda c: {"drop": c + ".none"},
    "drop view": lambda c: {"drop": c + ".view"},
    "create series": lambda c: {"create": c + ".series", "timeseries": {"timeField": "t"}},
    "insert into series": lambda c: {"insert": c + ".series", "documents": [{"t": datetime.datetime(2026, 1, 1)}]},
    "find series": lambda c: {"find": c + ".series"},
    "find buckets": lambda c: {"find": "system.buckets." + c + ".series"},
    "$unionWith series": lambda c: {"aggregate": "c", "pipeline": [{"$unionWith": c + ".series"}], "cursor": {}},
    "$lookup buckets": lambda c: {"aggregate": "c", "pipeline": [
        {"$lookup": {"from": "system.buckets." + c + ".series", "localField": "a", "foreignField": "b", "as": "x"}}], "cursor": {}},
    "$indexStats series": lambda c: {"aggregate": c + ".series", "pipeline": [{"$indexStats": {}}], "cursor": {}},
    "$collStats series": lambda c: {"aggregate": c + ".series", "pipeline": [{"$collStats": {"count": {}}}], "cursor": {}},
    "collStats series": lambda c: {"collStats": c + ".series"},
    "validate series": lambda c: {"validate": c + ".series"},
    "collMod series": lambda c: {"collMod": c + ".series", "timeseries": {"granularity": "minutes"}},
    "createIndexes series": lambda c: {"createIndexes": c + ".series", "indexes": [{"key": {"a": 1}, "name": "a_1"}]},
    "listIndexes series": lambda c: {"listIndexes": c + ".series"},
    "create view of series": lambda c: {"create": c + ".over", "viewOn": c + ".series", "pipeline": []},
    "create view of buckets": lambda c: {"create": c + ".raw", "viewOn": "system.buckets." + c + ".series", "pipeline": []},
    "collMod view lookup": lambda c: {"collMod": c + ".view", "viewOn": c, "pipeline": [
        {"$facet": {"a": [{"$lookup": {"from": "other", "pipeline": [{"$unionWith": "third"}], "as": "x"}}]}}]},
    "$out into view": lambda c: {"aggregate": c, "pipeline": [NOTHING, {"$out": c + ".view"}], "cursor": {}},
    "$merge into view": lambda c: {"aggregate": c, "pipeline": [NOTHING, {"$merge": c + ".view"}], "cursor": {}},
    "drop series": lambda c: {"drop": c + ".series"},
    "drop over": lambda c: {"drop": c + ".over"},
    "drop raw": lambda c: {"drop": c + ".raw"},
}
OF_BUCKETS = ("find buckets", "$lookup buckets")
# Of the collections of users and roles: writes that find none.
ACCOUNTS = [("admin", "system.users"), ("admin", "system.roles"), (OWN, "system.users"), ("config", "system.sessions")]
ON_ACCOUNTS = ["update", "update bypass", "delete", "findAndModify update", "findAndModify remove", "$merge fail", "createIndexes"]
# Of a database.
ON_DATABASES = {
    "dbStats": {"dbStats": 1},
    "dbHash": {"dbHash": 1},
    "listCollections": {"listCollections": 1},
    "listCollections names": {"listCollections": 1, "nameOnly": True},
    "listCollections authorized": {"listCollections": 1, "nameOnly": True, "authorizedCollections": True},
    "listCollections authorized whole": {"listCollections": 1, "authorizedCollections": True},
    "profile read": {"profile": -1},
    "profile set": {"profile": 0},
    "profile slowms": {"profile": -1, "slowms": 100},
    "$documents to lookup": {"aggregate": 1, "pipeline": [
        {"$documents": [{"a": 1}]}, {"$lookup": {"from": "c", "localField": "a", "foreignField": "b", "as": "x"}}], "cursor": {}},
    "$documents to $merge": {"aggregate": 1, "pipeline": [{"$documents": []}, {"$merge": "rights_merge"}], "cursor": {}},
    "$listLocalSessions": {"aggregate": 1, "pipeline": [{"$listLocalSessions": {}}], "cursor": {}},
    "$listLocalSessions all": {"aggregate": 1, "pipeline": [{"$listLocalSessions": {"allUsers": True}}], "cursor": {}},
    "$listLocalSessions users": {"aggregate": 1, "pipeline": [{"$listLocalSessions": {"users": [{"user": "u", "db": "d"}]}}], "cursor": {}},
    "$changeStream of all": {"aggregate": 1, "pipeline": [{"$changeStream": {}}], "cursor": {}},
    "$currentOp elsewhere": {"aggregate": 1, "pipeline": [{"$currentOp": {"allUsers": True}}], "cursor": {}},
    "$documents": {"aggregate": 1, "pipeline": [{"$documents": [{"a": 1}]}], "cursor": {}},
    "usersInfo all": {"usersInfo": 1},
    "usersInfo own": {"usersInfo": {"user": "read", "db": OWN}},
    "usersInfo other": {"usersInfo": {"user": "other", "db": OTHER}},
    "usersInfo everywhere": {"usersInfo": {"forAllDBs": True}},
    "usersInfo privileges": {"usersInfo": "none", "showPrivileges": True},
    "rolesInfo all": {"rolesInfo": 1},
    "rolesInfo built in": {"rolesInfo": "read"},
    "rolesInfo one": {"rolesInfo": {"role": "custom", "db": OWN}},
    "rolesInfo root": {"rolesInfo": {"role": "root", "db": "admin"}, "showPrivileges": True},
    "createUser": {"createUser": "made", "pwd": "x", "roles": ["no such role"]},
    "createUser granting": {"createUser": "made", "pwd": "x", "roles": [{"role": "no such role", "db": OTHER}]},
    "createUser custom": {"createUser": "made", "pwd": "x", "roles": ["no such role"], "customData": {"a": 1}},
    "createUser restricted": {"createUser": "made", "pwd": "x", "roles": ["no such role"], "authenticationRestrictions": [{"clientSource": ["127.0.0.1"]}]},
    "dropUser": {"dropUser": "no such user"},
    "dropAllUsersFromDatabase": None,
    "dropAllRolesFromDatabase": None,
    "getnonce": {"getnonce": 1},
    "authenticate": {"authenticate": 1, "mechanism": "no such mechanism"},
    "saslStart": {"saslStart": 1, "mechanism": "no such mechanism", "payload": b""},
    "saslContinue": {"saslContinue": 1, "conversationId": 77, "payload": b""},
    "updateUser password": {"updateUser": "no such user", "pwd": "x"},
    "updateUser custom": {"updateUser": "no such user", "customData": {"a": 1}},
    "updateUser roles": {"updateUser": "no such user", "roles": [{"role": "read", "db": OWN}]},
    "grantRolesToUser": {"grantRolesToUser": "no such user", "roles": [{"role": "read", "db": OWN}]},
    "grantRolesToUser other": {"grantRolesToUser": "no such user", "roles": [{"role": "read", "db": OTHER}]},
    "revokeRolesFromUser": {"revokeRolesFromUser": "no such user", "roles": [{"role": "read", "db": OWN}]},
    "createRole": {"createRole": "made", "privileges": [], "roles": ["no such role"]},
    "createRole granting": {"createRole": "made", "privileges": [{"resource": {"db": OTHER, "collection": ""}, "actions": ["find"]}],
                            "roles": ["no such role"]},
    "createRole granting own": {"createRole": "made", "privileges": [{"resource": {"db": OWN, "collection": ""}, "actions": ["find"]}],
                                "roles": ["no such role"]},
    "createRole granting cluster": {"createRole": "made", "privileges": [{"resource": {"cluster": True}, "actions": ["inprog"]}],
                                    "roles": ["no such role"]},
    "updateRole": {"updateRole": "no such role", "roles": []},
    "updateRole granting": {"updateRole": "no such role", "roles": [{"role": "read", "db": OWN}]},
    "updateRole privileges": {"updateRole": "no such role", "privileges": [{"resource": {"db": OWN, "collection": ""}, "actions": ["find"]}]},
    "dropRole": {"dropRole": "no such role"},
    "grantRolesToRole": {"grantRolesToRole": "no such role", "roles": [{"role": "read", "db": OWN}]},
    "revokeRolesFromRole": {"revokeRolesFromRole": "no such role", "roles": [{"role": "read", "db": OWN}]},
    "grantPrivilegesToRole": {"grantPrivilegesToRole": "no such role", "privileges": [{"resource": {"db": OWN, "collection": ""}, "actions": ["find"]}]},
    "revokePrivilegesFromRole": {"revokePrivilegesFromRole": "no such role", "privileges": [
        {"resource": {"db": OWN, "collection": ""}, "actions": ["find"]}]},
    "hostInfo": {"hostInfo": 1},
    "serverStatus": {"serverStatus": 1},
    "connectionStatus": {"connectionStatus": 1, "showPrivileges": True},
    "listCommands": {"listCommands": 1},
    "ping": {"ping": 1},
    "buildInfo": {"buildInfo": 1},
    "hello": {"hello": 1},
    "isMaster": {"isMaster": 1},
    "whatsmyuri": {"whatsmyuri": 1},
    "getLastError": {"getLastError": 1},
    "startSession": {"startSession": 1},
    "endSessions": {"endSessions": []},
    "refreshSessions": {"refreshSessions": []},
    "killSessions": {"killSessions": [{"id": bson.Binary(b"0123456789abcdef", 4)}]},
    "killAllSessions": {"killAllSessions": [{"user": "no such user", "db": OWN}]},
    "killAllSessionsByPattern": {"killAllSessionsByPattern": [{"uid": bson.Binary(b"0" * 32)}]},
    "listCollections explain": {"explain": {"listCollections": 1}},
}
# Of the server: on admin only.
ON_ADMIN = {
    "listDatabases": {"listDatabases": 1},
    "listDatabases names": {"listDatabases": 1, "nameOnly": True},
    "listDatabases authorized": {"listDatabases": 1, "authorizedDatabases": True},
    "listDatabases all": {"listDatabases": 1, "authorizedDatabases": False},
    "currentOp": {"currentOp": 1},
    "currentOp own": {"currentOp": 1, "$ownOps": True},
    "$currentOp": {"aggregate": 1, "pipeline": [{"$currentOp": {}}], "cursor": {}},
    "$currentOp all": {"aggregate": 1, "pipeline": [{"$currentOp": {"allUsers": True}}], "cursor": {}},
    "$currentOp own": {"aggregate": 1, "pipeline": [{"$currentOp": {"allUsers": False}}], "cursor": {}},
    "killOp": {"killOp": 1, "op": 2_000_000_000},
    "getCmdLineOpts": {"getCmdLineOpts": 1},
    "getDefaultRWConcern": {"getDefaultRWConcern": 1},
    "setDefaultRWConcern": {"setDefaultRWConcern": 1, "defaultWriteConcern": {"w": 1}},
    "getDiagnosticData": {"getDiagnosticData": 1},
    "getLog": {"getLog": "global"},
    "getLog names": {"getLog": "*"},
    "getParameter": {"getParameter": 1, "logLevel": 1},
    "setParameter": {"setParameter": 1, "logLevel": 0},
    "top": {"top": 1},
    "fsync": {"fsync": 1},
    "fsyncUnlock": {"fsyncUnlock": 1},
    "replSetGetConfig": {"replSetGetConfig": 1},
    "replSetGetStatus": {"replSetGetStatus": 1},
    "replSetGetRBID": {"replSetGetRBID": 1},
    "replSetInitiate": {"replSetInitiate": {}},
    "replSetReconfig": {"replSetReconfig": {}},
    "features": {"features": 1},
    "getShardMap": {"getShardMap": 1},
    "shardingState": {"shardingState": 1},
    "lockInfo": {"lockInfo": 1},
    "connPoolStats": {"connPoolStats": 1},
    "invalidateUserCache": {"invalidateUserCache": 1},
    "rotateCertificates": {"rotateCertificates": 1},
    "commitTransaction": {"commitTransaction": 1},
    "abortTransaction": {"abortTransaction": 1},
    "killAllSessions all": {"killAllSessions": []},
    "killAllSessionsByPattern user": {"killAllSessionsByPattern": [{"users": [{"user": "no such user", "db": OWN}]}]},
    "killAllSessionsByPattern role": {"killAllSessionsByPattern": [{"roles": [{"role": "no such role", "db": OWN}]}]},
    "logRotate": {"logRotate": "no such log"},
    "_mergeAuthzCollections": {"_mergeAuthzCollections": 1, "tempUsersCollection": "admin.tempusers", "tempRolesCollection": "admin.temproles",
                               "db": "no such", "drop": False},
    "_mergeAuthzCollections dropping": {"_mergeAuthzCollections": 1, "tempUsersCollection": "admin.tempusers", "db": "no such", "drop": True},
    "_mergeAuthzCollections elsewhere": {"_mergeAuthzCollections": 1, "tempUsersCollection": f"{OWN}.c", "db": "no such", "drop": False},
}


def rename(source, target, **more):
    return {"renameCollection": source, "to": target, **more}


RENAMES = {
    "rename": rename(f"{OWN}.none", f"{OWN}.none2"),
    "rename dropping": rename(f"{OWN}.none", f"{OWN}.none2", dropTarget=True),
    "rename across": rename(f"{OWN}.none", f"{OTHER}.none2"),
    "rename across dropping": rename(f"{OWN}.none", f"{OTHER}.none2", dropTarget=True),
    "rename back": rename(f"{OTHER}.none", f"{OWN}.none2"),
    "rename other": rename(f"{OTHER}.none", f"{OTHER}.none2"),
    "rename config": rename("config.none", "config.none2"),
    "rename local": rename("local.none", "local.none2"),
    "rename admin": rename("admin.none", "admin.none2"),
    "rename system": rename(f"{OWN}.system.js", f"{OWN}.none2"),
    "rename to system": rename(f"{OWN}.none", f"{OWN}.system.js"),
    "rename users": rename("admin.system.users", f"{OWN}.none2"),
    "rename to users": rename(f"{OWN}.none", "admin.system.users"),
    "rename to roles": rename(f"{OWN}.none", "admin.system.roles"),
    "rename buckets": rename(f"{OWN}.system.buckets.none", f"{OWN}.none2"),
    "rename to buckets": rename(f"{OWN}.none", f"{OWN}.system.buckets.none2"),
    "rename profile": rename(f"{OWN}.system.profile", f"{OWN}.none2"),
    "rename to config": rename(f"{OWN}.none", "config.none2"),
    "rename from admin": rename("admin.none", f"{OWN}.none2"),
    "rename within other to own": rename(f"{OTHER}.none", f"{OWN}.none2", dropTarget=True),
}
# Pipelines that read more than their own collection: of the database OWN on the collection c.
PIPELINES = {
    "$lookup system": [{"$lookup": {"from": "system.js", "localField": "a", "foreignField": "b", "as": "x"}}],
    "$lookup profile": [{"$lookup": {"from": "system.profile", "localField": "a", "foreignField": "b", "as": "x"}}],
    "$lookup pipeline": [{"$lookup": {"from": "c", "pipeline": [
        {"$lookup": {"from": "system.profile", "localField": "a", "foreignField": "b", "as": "x"}}], "as": "x"}}],
    "$lookup pipeline plain": [{"$lookup": {"from": "system.js", "pipeline": [], "as": "x"}}],
    "$graphLookup": [{"$graphLookup": {"from": "system.profile", "startWith": "$a", "connectFromField": "a", "connectToField": "b", "as": "x"}}],
    "$graphLookup own": [{"$graphLookup": {"from": "c", "startWith": "$a", "connectFromField": "a", "connectToField": "b", "as": "x"}}],
    "$unionWith profile": [{"$unionWith": "system.profile"}],
    "$unionWith pipeline": [{"$unionWith": {"coll": "c", "pipeline": [{"$unionWith": "system.profile"}]}}],
    "$facet lookup": [{"$facet": {"a": [{"$lookup": {"from": "system.profile", "localField": "a", "foreignField": "b", "as": "x"}}]}}],
    "$facet union": [{"$facet": {"a": [{"$unionWith": "c"}]}}],
    "$out db own": [NOTHING, {"$out": {"db": OWN, "coll": "rights_out"}}],
    "$merge other": [NOTHING, {"$merge": {"into": {"db": OTHER, "coll": "rights_merge"}}}],
    "$merge pipeline": [NOTHING, {"$merge": {"into": "rights_merge", "whenMatched": [{"$set": {"a": 1}}]}}],
    "$merge replace": [NOTHING, {"$merge": {"into": "rights_merge", "whenMatched": "replace"}}],
    "$merge matched fail": [NOTHING, {"$merge": {"into": "rights_merge", "whenMatched": "fail"}}],
    "$facet nested": [{"$facet": {"a": [{"$lookup": {"from": "c", "pipeline": [{"$unionWith": "system.profile"}], "as": "x"}}]}}],
    "$facet graph": [{"$facet": {"a": [
        {"$graphLookup": {"from": "system.profile", "startWith": "$a", "connectFromField": "a", "connectToField": "b", "as": "x"}}]}}],
    "$facet $out": [{"$facet": {"a": [{"$out": "rights_out"}]}}],
    "$facet $collStats": [{"$facet": {"a": [{"$collStats": {"count": {}}}]}}],
    "$facet $indexStats": [{"$facet": {"a": [{"$indexStats": {}}]}}],
    "$unionWith lookup": [{"$unionWith": {"coll": "c", "pipeline": [
        {"$lookup": {"from": "system.profile", "localField": "a", "foreignField": "b", "as": "x"}}]}}],
    "$unionWith documents": [{"$unionWith": {"pipeline": [{"$documents": [{"a": 1}]}]}}],
    "$unionWith documents lookup": [{"$unionWith": {"pipeline": [
        {"$documents": [{"a": 1}]}, {"$lookup": {"from": "system.profile", "localField": "a", "foreignField": "b", "as": "x"}}]}}],
    "$lookup documents": [{"$lookup": {"pipeline": [{"$documents": [{"a": 1}]}], "as": "x"}}],
    "$lookup union": [{"$lookup": {"from": "c", "pipeline": [{"$unionWith": "system.profile"}], "as": "x"}}],
    "$lookup facet": [{"$lookup": {"from": "c", "pipeline": [{"$facet": {"a": [{"$unionWith": "system.profile"}]}}], "as": "x"}}],
    "$lookup $out": [{"$lookup": {"from": "c", "pipeline": [{"$out": "rights_out"}], "as": "x"}}],
    "$lookup $currentOp": [{"$lookup": {"from": "c", "pipeline": [{"$currentOp": {"allUsers": True}}], "as": "x"}}],
    "$unionWith $listSessions": [{"$unionWith": {"coll": "c", "pipeline": [{"$listSessions": {"allUsers": True}}]}}],
    "$lookup buckets": [{"$lookup": {"from": "system.buckets.s", "localField": "a", "foreignField": "b", "as": "x"}}],
    "$unionWith buckets": [{"$unionWith": "system.buckets.s"}],
    "$out to users": [NOTHING, {"$out": {"db": "admin", "coll": "no.system.users"}}],
    "$merge to users": [NOTHING, {"$merge": {"into": {"db": "admin", "coll": "system.users"}, "whenNotMatched": "discard"}}],
    "$merge to roles": [NOTHING, {"$merge": {"into": {"db": "admin", "coll": "system.roles"}, "whenNotMatched": "fail"}}],
    "$merge to buckets": [NOTHING, {"$merge": {"into": "system.buckets.none", "whenNotMatched": "discard"}}],
    "$merge to config": [NOTHING, {"$merge": {"into": {"db": "config", "coll": "rights_merge"}, "whenNotMatched": "discard"}}],
    "$changeStream": [{"$changeStream": {}}],
    "$listSessions": [{"$listSessions": {}}],
    "$listSessions all": [{"$listSessions": {"allUsers": True}}],
    "$listSessions users": [{"$listSessions": {"users": [{"user": "u", "db": "d"}]}}],
}


def questions():
    """All questions: name, database, request."""
    for name, make in READS.items():
        for database, collection in COLLECTIONS:
            request = {"dataSize": f"{database}.{collection}"} if name == "dataSize" else make(collection)
            yield f"{name} {database}.{collection}", database, request
    for name, make in WRITES.items():
        for database, collection in CHANGED:
            if name in OF_BUCKETS and collection.startswith("system.buckets."):
                # No series has such buckets.
                continue
            yield f"{name} {database}.{collection}", database, make(collection)
    for name in ON_ACCOUNTS:
        for database, collection in ACCOUNTS:
            yield f"{name} {database}.{collection}", database, WRITES[name](collection)
    yield "$listSessions config", "config", {"aggregate": "system.sessions", "pipeline": [{"$listSessions": {}}], "cursor": {}}
    yield "$listSessions all config", "config", {"aggregate": "system.sessions", "pipeline": [{"$listSessions": {"allUsers": True}}], "cursor": {}}
    for name, request in ON_DATABASES.items():
        for database in DATABASES:
            if name in ("dropAllUsersFromDatabase", "dropAllRolesFromDatabase"):
                if database == OTHER:
                    yield f"{name} {database}", database, {name: 1}
                continue
            yield f"{name} {database}", database, request
    for name, request in ON_ADMIN.items():
        yield name, "admin", request
    for name, request in RENAMES.items():
        yield name, "admin", request
    for name, stages in PIPELINES.items():
        yield f"{name} of {OWN}", OWN, {"aggregate": "c", "pipeline": stages, "cursor": {}}
        yield f"{name} of {OWN} explained", OWN, {"explain": {"aggregate": "c", "pipeline": stages, "cursor": {}}}
    for database in DATABASES[:2]:
        yield f"dropDatabase {database}_none", f"{database}_none", {"dropDatabase": 1}
    for database in ("config", "local"):
        yield f"dropDatabase {database}", database, {"dropDatabase": 1}
    yield "dataSize elsewhere", OWN, {"dataSize": f"{OTHER}.c"}
    yield "dataSize of a database that is not named", OWN, {"dataSize": "c"}
    yield "aggregate 1", OWN, {"aggregate": 1, "pipeline": [], "cursor": {}}
    for database in DATABASES:
        # The chunks lie in a collection that the field `root` names.
        yield f"filemd5 {database}", database, {"filemd5": 1}
        yield f"filemd5 with a root {database}", database, {"filemd5": 1, "root": "c"}


def on(collection, *actions, database=OWN):
    return {"resource": {"db": database, "collection": collection}, "actions": list(actions)}


def cluster(*actions):
    return {"resource": {"cluster": True}, "actions": list(actions)}


# Roles of users, on the database OWN unless a privilege needs `admin`. Most have one action, so that a request which needs
# two is found out.
ROLES = {
    **{action: [on("", action)] for action in (
        "find", "insert", "update", "remove", "createCollection", "createIndex", "collMod", "dropCollection", "renameCollectionSameDB",
        "killCursors", "enableProfiler", "listCollections", "changeOwnPassword", "grantRole", "viewUser", "viewRole", "killAnyCursor")},
    "find insert": [on("", "find", "insert")],
    "find update": [on("", "find", "update")],
    "find remove": [on("", "find", "remove")],
    "insert update": [on("", "insert", "update")],
    "find insert update": [on("", "find", "insert", "update")],
    "find insert remove": [on("", "find", "insert", "remove")],
    "find insert remove bypass": [on("", "find", "insert", "remove", "bypassDocumentValidation")],
    "update bypass": [on("", "find", "insert", "update", "bypassDocumentValidation")],
    "create capped": [on("", "createCollection", "convertToCapped")],
    "clone capped": [on("", "find", "insert", "createIndex", "convertToCapped")],
    "clone capped without index": [on("", "find", "insert", "convertToCapped")],
    "create find": [on("", "createCollection", "find")],
    "create find of c": [on("", "createCollection"), on("c", "find")],
    "collMod find": [on("", "collMod", "find")],
    "rename find": [on("", "renameCollectionSameDB", "find")],
    "rename find of source": [on("", "renameCollectionSameDB"), on("none", "find")],
    "rename find of target": [on("", "renameCollectionSameDB"), on("none2", "find")],
    "rename dropping": [on("", "renameCollectionSameDB", "dropCollection")],
    "rename inserting": [on("", "renameCollectionSameDB", "insert")],
    "move": [on("", "find", "dropCollection", "insert", "createIndex")],
    "move dropping": [on("", "find", "dropCollection", "insert", "createIndex", "remove", "createCollection")],
    "move there": [on("", "find", "dropCollection"), on("", "insert", "createIndex", database=OTHER)],
    "move there dropping": [on("", "find", "dropCollection"), on("", "insert", "createIndex", "dropCollection", "remove", database=OTHER)],
    "profile": [on("system.profile", "find")],
    "one collection": [on("c", "find", "insert", "update", "remove", "createCollection", "createIndex", "dropCollection", "collMod")],
    "one name": [{"resource": {"db": "", "collection": "c"}, "actions": ["find", "insert"]}],
    "views": [on("system.views", "find", "insert")],
    "buckets": [{"resource": {"system_buckets": "s"}, "actions": ["find", "insert"]}],
    "buckets of own": [{"resource": {"db": OWN, "system_buckets": ""}, "actions": ["find"]}],
    "bucket of own": [{"resource": {"db": OWN, "system_buckets": "s"}, "actions": ["find"]}],
    "everything": [{"resource": {"anyResource": True}, "actions": ["find"]}],
    "cluster": [cluster("inprog", "listDatabases", "killAnySession")],
    "impersonate": [cluster("impersonate", "killAnySession")],
    "impersonate only": [cluster("impersonate")],
    "kill": [cluster("killAnyCursor", "killop")],
    "fsync": [cluster("fsync", "getLog", "top", "hostInfo")],
    "unlock": [cluster("unlock", "getCmdLineOpts", "serverStatus")],
    "concerns": [cluster("getDefaultRWConcern", "setDefaultRWConcern")],
    "replication": [cluster("replSetGetConfig", "replSetGetStatus", "getParameter", "setParameter")],
    "sessions": [cluster("listSessions", "invalidateUserCache", "authSchemaUpgrade")],
    "users of all": [cluster("viewUser")],
    "stats": [on("", "collStats", "indexStats", "validate", "listIndexes", "compact", "reIndex", "dropIndex", "planCacheRead", "dbStats", "dbHash")],
    "collStats": [on("", "collStats")],
    "indexStats": [on("", "indexStats")],
    "validate": [on("", "validate")],
    "compact": [on("", "compact")],
    "reIndex": [on("", "reIndex")],
    "dropIndex": [on("", "dropIndex")],
    "dropDatabase": [on("", "dropDatabase", database=OWN + "_none")],
    "dbHash": [on("", "dbHash")],
    "dbStats": [on("", "dbStats")],
    "storageDetails": [on("", "storageDetails", "planCacheRead")],
    "listIndexes": [on("", "listIndexes")],
    "createUser": [on("", "createUser")],
    "createUser granting": [on("", "createUser", "grantRole")],
    "dropUser": [on("", "dropUser")],
    "createRole": [on("", "createRole")],
    "createRole granting": [on("", "createRole", "grantRole")],
    "dropRole": [on("", "dropRole")],
    "revokeRole": [on("", "revokeRole")],
    "revoke and grant": [on("", "revokeRole", "grantRole")],
    "changePassword": [on("", "changePassword")],
    "changeCustomData": [on("", "changeCustomData")],
    "create restricted": [on("", "createUser", "setAuthenticationRestriction")],
}
# The questions that users with these roles are asked: of each command, on few databases and collections.
PLACES_OF_ROLES = {f"{OWN}.c", f"{OWN}.system.buckets.s", f"{OWN}.system.views", f"{OTHER}.c", OWN, OTHER}


def questions_of_roles():
    """The questions that users with the roles of ROLES are asked."""
    for name, database, request in questions():
        place = name.rsplit(" ", 1)[-1]
        is_placed = place in DATABASES or place.split(".")[0] in DATABASES
        if place in PLACES_OF_ROLES or not is_placed:
            yield name, database, request
