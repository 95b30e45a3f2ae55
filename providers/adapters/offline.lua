return {contract=1,name="offline",version="1.0.0",capabilities={tools=true},respond=function(req) return {} end}
