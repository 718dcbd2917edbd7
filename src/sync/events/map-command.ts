/** The command that maps an account to a service user. An id that a shell would not take as one word is named by its column. */
export const mapCommand = (serviceUserId: string, name = 'NAME'): string =>
  `ringneck account map ${name} ${/^\w[\w.@:+-]*$/.test(serviceUserId) ? serviceUserId : '<service_user_id>'}`;
