-- Sessions, device codes and CIBA requests are stored without what redeems them. Those of the former form cannot be
-- converted without the master key: they end. People sign in again; grants and tokens live on.
delete from oidc_record where kind in ('Session', 'DeviceCode', 'BackchannelAuthenticationRequest', 'Interaction');
